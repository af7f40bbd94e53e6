/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/weights.c */
#include "common/session/weights.h"
#include "common/base/file.h"
#include "common/ckpt/pretrained.h"
#include "common/compile/compile.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void wf_weights_close(wf_weights *w)
{
    wf_named_close(&w->list);
    wf_learnt_close(&w->learnt);
    *w = (wf_weights){0};
}

static wf_status digest_of(const wf_job_conf *job, char digest[WF_DIGEST_TEXT], wf_err *err)
{
    wf_compile_spec spec;
    wf_compiled *c = NULL;
    wf_model model;

    wf_compile_spec_of_job(job, WF_COMPILE_INFER, NULL, 0, &model, &spec);
    spec.read_weights = wf_pretrained_read;
    WF_TRY(wf_compile(&spec, &c, err));
    snprintf(digest, WF_DIGEST_TEXT, "%016" PRIx64, c->digest);
    wf_compiled_free(&c);
    return WF_OK;
}

/* The step that the file `best` names. */
static wf_status best_step(const char *dir, const char *job, uint64_t *step, wf_err *err)
{
    char path[WF_CKPT_PATH];
    wf_bytes text = {0};
    wf_status rc;

    snprintf(path, sizeof path, "%s/%s/best", dir, job);
    rc = wf_file_read(path, 64, &text, err);
    if (rc == WF_NOTFOUND)
        return wf_fail(err, rc, "give the job the callback model_checkpoint",
                       "no checkpoint of job \"%s\" is marked as the best", job);
    if (rc == WF_OK && sscanf(wf_bytes_str(&text), "step-%" SCNu64, step) != 1)
        rc = wf_fail(err, WF_CORRUPT, NULL, "%s names no checkpoint", path);
    wf_bytes_close(&text);
    return rc;
}

static wf_status open_ckpt(const char *dir, const char *job, const char *digest, int64_t step,
                           wf_ckpt_passed_over *told, void *arg, wf_ckpt **out, wf_err *err)
{
    uint64_t at = (uint64_t)step;

    if (step == WF_STEP_NEWEST)
        return wf_ckpt_newest(wf_disk_posix(), dir, job, digest, UINT64_MAX, told, arg, out, err);
    if (step == WF_STEP_BEST)
        WF_TRY(best_step(dir, job, &at, err));
    WF_TRY(wf_ckpt_open(wf_disk_posix(), dir, job, at, true, out, err));
    if (strcmp(wf_ckpt_manifest(*out)->digest, digest) == 0)
        return WF_OK;
    return wf_fail(err, WF_MISMATCH, "give the job file that it was trained with",
                   "%s of job \"%s\" was saved by graph %s, the job has %s", wf_ckpt_name(*out),
                   job, wf_ckpt_manifest(*out)->digest, digest);
}

static wf_status read_variable(wf_ckpt *c, const wf_ckpt_variable *v, wf_named_list *out,
                               wf_err *err)
{
    wf_tensor *t = NULL;
    wf_status rc;

    if (v->dtype != WF_F32 && v->dtype != WF_BF16 && v->dtype != WF_F16 && v->dtype != WF_I8)
        return wf_fail(err, WF_UNSUPPORTED, "train it in float32",
                       "exporting \"%.200s\", which is %s, is not built yet", v->name,
                       wf_dtype_name(v->dtype));
    WF_TRY(wf_tensor_new(WF_F32, v->rank, v->dims, &t, err));
    rc = wf_ckpt_read_range(c, v->name, NULL, 0, (uint64_t)wf_elems(t), wf_f32_mut(t), err);
    if (rc == WF_OK)
        rc = wf_named_add(out, v->name, &t, true, err);
    wf_tensor_free(&t);
    return rc;
}

wf_status wf_weights_read(const char *dir, const char *run, const wf_job_conf *job, int64_t step,
                          wf_ckpt_passed_over *told, void *arg, wf_weights *w, wf_err *err)
{
    char digest[WF_DIGEST_TEXT];
    const wf_manifest *m;
    wf_ckpt *c = NULL;
    wf_status rc;

    WF_TRY(digest_of(job, digest, err));
    rc = open_ckpt(dir, run, digest, step, told, arg, &c, err);
    m = rc == WF_OK ? wf_ckpt_manifest(c) : NULL;
    for (size_t i = 0; rc == WF_OK && i < m->n_variables; i++)
        rc = read_variable(c, &m->variables[i], &w->list, err);
    if (rc == WF_OK)
        rc = wf_learnt_keep(m->learnt, m->n_learnt, &w->learnt, err);
    if (rc == WF_OK)
        snprintf(w->from, sizeof w->from, "%s", wf_ckpt_name(c));
    wf_ckpt_close(&c);
    return rc;
}
