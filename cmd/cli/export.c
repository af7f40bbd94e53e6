/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/export.c - a trained model as an ONNX file: the job's model with a checkpoint's weights.
 */
#include "cmd/cli/cli.h"
#include "cmd/cli/place.h"
#include "common/ckpt/ckpt.h"
#include "common/compile/compile.h"
#include "common/graph/onnx.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct weights {
    wf_named_tensor *named; /* [n]; the tensors are owned */
    size_t n;
} weights;

static void close_weights(weights *w)
{
    for (size_t i = 0; i < w->n; i++) {
        wf_tensor *t = (wf_tensor *)w->named[i].tensor;

        wf_tensor_free(&t);
    }
    free(w->named);
    *w = (weights){0};
}

static void tell(void *arg, uint64_t step, const char *sentence)
{
    (void)arg, (void)step;
    fprintf(stderr, "%s\n", sentence);
}

static wf_status digest_of(const wf_compile_spec *spec, char digest[WF_DIGEST_TEXT], wf_err *err)
{
    wf_compiled *c = NULL;

    WF_TRY(wf_compile(spec, &c, err));
    snprintf(digest, WF_DIGEST_TEXT, "%016" PRIx64, c->digest);
    wf_compiled_free(&c);
    return WF_OK;
}

static wf_status open_ckpt(const wf_cluster_conf *conf, const char *job, const char *digest,
                           const char *from, wf_ckpt **out, wf_err *err)
{
    unsigned long long step;

    if (!from || strcmp(from, "latest") == 0)
        return wf_ckpt_newest(wf_disk_posix(), conf->checkpoint_dir, job, digest, UINT64_MAX, tell,
                              NULL, out, err);
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

static wf_status read_weights(wf_ckpt *c, weights *w, wf_err *err)
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

/* The largest difference between the file as it reads back and the checkpoint. */
static wf_status compare(const char *file, const weights *w, double *most, wf_err *err)
{
    wf_graph *g = NULL;
    wf_status rc = wf_onnx_read(file, &g, err);

    *most = 0;
    for (size_t i = 0; rc == WF_OK && i < w->n; i++) {
        const wf_value *v = wf_graph_value(g, w->named[i].name);
        const wf_tensor *want = w->named[i].tensor;

        if (!v || !v->known || wf_elems(v->known) != wf_elems(want) || v->known->dtype != WF_F32) {
            rc = wf_fail(err, WF_CORRUPT, NULL, "%s does not read back: \"%.200s\" is missing",
                         file, w->named[i].name);
            break;
        }
        for (int64_t k = 0; k < wf_elems(want); k++) {
            double d = fabs((double)wf_f32(v->known)[k] - (double)wf_f32(want)[k]);

            *most = d > *most ? d : *most;
        }
    }
    wf_graph_free(&g);
    return rc;
}

static wf_status export_job(const wf_cluster_conf *conf, const wf_job_conf *job, const char *from,
                            const char *file, wf_err *err)
{
    wf_compile_spec spec;
    wf_model model;
    char digest[WF_DIGEST_TEXT];
    wf_graph *g = NULL;
    wf_ckpt *c = NULL;
    weights w = {0};
    double most;
    wf_status rc;

    wf_compile_spec_of_job(job, WF_COMPILE_INFER, 1, &model, &spec);
    rc = digest_of(&spec, digest, err);
    if (rc == WF_OK)
        rc = open_ckpt(conf, job->name, digest, from, &c, err);
    if (rc == WF_OK)
        rc = read_weights(c, &w, err);
    if (rc == WF_OK)
        rc = wf_compile_export(&spec, w.n, w.named, &g, err);
    if (rc == WF_OK)
        rc = wf_onnx_write(g, file, err);
    if (rc == WF_OK)
        rc = compare(file, &w, &most, err);
    if (rc == WF_OK)
        printf("%s: %zu initializers updated by name, read back; max |Δ| to %s: %g\n", file, w.n,
               wf_ckpt_name(c), most);
    close_weights(&w);
    wf_graph_free(&g);
    wf_ckpt_close(&c);
    return rc;
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    const char *file = NULL, *from = NULL, *cluster = NULL;
    wf_cluster_conf *conf = NULL;
    wf_job_conf *job = NULL;
    wf_words words;
    const wf_flag flags[] = {{"output", 'o', .value = &file},
                             {"from", 0, .value = &from},
                             {"cluster", 0, .value = &cluster},
                             {0}};
    wf_status rc;

    WF_TRY(wf_args(flags, argc, argv, 1, 1, &words, err));
    if (!file)
        return wf_fail(err, WF_USAGE, "add -o model.onnx", "weft export wants a file to write");
    rc = wf_place_cluster(cluster, false, &conf, err);
    if (rc == WF_OK)
        rc = wf_place_job(conf, words.word[0], &job, err);
    if (rc == WF_OK)
        rc = export_job(conf, job, from, file, err);
    wf_job_free(&job);
    wf_cluster_free(&conf);
    return rc;
}

const wf_cmd wf_cmd_export = {
    .name = "export",
    .help = "write a trained model as an ONNX file",
    .usage =
        "weft export JOB|JOB.yaml -o MODEL.onnx [--from STEP]\n\n"
        "Takes the newest checkpoint that verifies (or that of --from STEP) and writes the job's\n"
        "model for inference with its weights: no loss, no labels, no dropout. Names of inputs,\n"
        "outputs and initializers are the model's own. The file is read back and compared.\n"
        "  -o MODEL.onnx    the file to write\n"
        "  --from STEP      that checkpoint, and no other\n"
        "  --cluster FILE   where the job ran; else ./cluster.yaml, else the local cluster\n\n"
        "  weft export digits -o digits.onnx\n",
    .run = run,
};
