/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/weights.c */
#include "cmd/cli/weights.h"
#include "cmd/cli/cli.h"
#include "cmd/cli/term.h"
#include "common/base/file.h"
#include "common/ckpt/pretrained.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void wf_weights_close(wf_weights *w)
{
    for (size_t i = 0; i < w->n; i++) {
        wf_tensor *t = (wf_tensor *)w->named[i].tensor;

        wf_tensor_free(&t);
    }
    free(w->named);
    *w = (wf_weights){0};
}

static void tell(void *arg, uint64_t step, const char *sentence)
{
    (void)arg, (void)step;
    wf_term_print(stderr, "%s\n", sentence);
}

static wf_status digest_of(const wf_compile_spec *spec, char digest[WF_DIGEST_TEXT], wf_err *err)
{
    wf_compiled *c = NULL;

    WF_TRY(wf_compile(spec, &c, err));
    snprintf(digest, WF_DIGEST_TEXT, "%016" PRIx64, c->digest);
    wf_compiled_free(&c);
    return WF_OK;
}

/* The step that the file `best` names. */
static wf_status best_step(const wf_cluster_conf *conf, const char *job, unsigned long long *step,
                           wf_err *err)
{
    char path[WF_CKPT_PATH];
    wf_bytes text = {0};
    wf_status rc;

    snprintf(path, sizeof path, "%s/%s/best", conf->checkpoint_dir, job);
    rc = wf_file_read(path, 64, &text, err);
    if (rc == WF_NOTFOUND)
        return wf_fail(err, rc, "give the job the callback model_checkpoint",
                       "no checkpoint of job \"%s\" is called the best", job);
    if (rc == WF_OK && sscanf(wf_bytes_str(&text), "step-%llu", step) != 1)
        rc = wf_fail(err, WF_CORRUPT, NULL, "%s names no checkpoint", path);
    wf_bytes_close(&text);
    return rc;
}

static wf_status open_ckpt(const wf_cluster_conf *conf, const char *job, const char *digest,
                           const char *from, wf_ckpt **out, wf_err *err)
{
    unsigned long long step;

    if (!from || strcmp(from, "latest") == 0)
        return wf_ckpt_newest(wf_disk_posix(), conf->checkpoint_dir, job, digest, UINT64_MAX, tell,
                              NULL, out, err);
    if (strcmp(from, "best") == 0)
        WF_TRY(best_step(conf, job, &step, err));
    else
        WF_TRY(wf_arg_u64("--from", from, 0, INT64_MAX, &step, err));
    WF_TRY(wf_ckpt_open(wf_disk_posix(), conf->checkpoint_dir, job, step, true, out, err));
    if (strcmp(wf_ckpt_manifest(*out)->digest, digest) == 0)
        return WF_OK;
    return wf_fail(err, WF_MISMATCH, "give the changed model a new job name",
                   "%s of job \"%s\" was saved by graph %s, the job has %s", wf_ckpt_name(*out),
                   job, wf_ckpt_manifest(*out)->digest, digest);
}

static wf_status read_variable(wf_ckpt *c, const wf_ckpt_variable *v, wf_named_tensor *out,
                               wf_err *err)
{
    wf_tensor *t = NULL;
    wf_status rc;

    if (v->dtype != WF_F32)
        return wf_fail(err, WF_UNSUPPORTED, "train it in float32",
                       "exporting \"%.200s\", which is %s, is not built yet", v->name,
                       wf_dtype_name(v->dtype));
    WF_TRY(wf_tensor_new(WF_F32, v->rank, v->dims, &t, err));
    rc = wf_ckpt_read_range(c, v->name, NULL, 0, (uint64_t)wf_elems(t), wf_f32_mut(t), err);
    if (rc != WF_OK) {
        wf_tensor_free(&t);
        return rc;
    }
    *out = (wf_named_tensor){v->name, t};
    return WF_OK;
}

static wf_status read_all(wf_ckpt *c, wf_weights *w, wf_err *err)
{
    const wf_manifest *m = wf_ckpt_manifest(c);

    w->named = calloc(m->n_variables + 1, sizeof *w->named);
    if (!w->named)
        return wf_fail_nomem(err, m->n_variables * sizeof *w->named);
    for (size_t i = 0; i < m->n_variables; i++) {
        WF_TRY(read_variable(c, &m->variables[i], &w->named[i], err));
        w->n++;
    }
    return WF_OK;
}

wf_status wf_weights_read(const wf_cluster_conf *conf, const wf_job_conf *job, const char *from,
                          wf_ckpt **c, wf_weights *w, wf_err *err)
{
    wf_compile_spec spec;
    wf_model model;
    char digest[WF_DIGEST_TEXT];

    wf_compile_spec_of_job(job, WF_COMPILE_INFER, NULL, 0, &model, &spec);
    spec.read_weights = wf_pretrained_read;
    WF_TRY(digest_of(&spec, digest, err));
    WF_TRY(open_ckpt(conf, job->name, digest, from, c, err));
    return read_all(*c, w, err);
}
