/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/export.c - a trained model as an ONNX file: the job's model with a checkpoint's weights.
 */
#include "cmd/cli/cli.h"
#include "cmd/cli/place.h"
#include "cmd/cli/term.h"
#include "cmd/cli/weights.h"
#include "common/ckpt/pretrained.h"
#include "common/compile/compile.h"
#include "common/onnx/onnx.h"

#include <math.h>
#include <stdio.h>

/* Element i of a float32 tensor, or of halves that it was rounded to. */
static double number_at(const wf_tensor *t, int64_t i)
{
    const uint16_t *halves = t->data;

    return (double)(t->dtype == WF_F16    ? wf_f16_to_f32(halves[i])
                    : t->dtype == WF_BF16 ? wf_bf16_to_f32(halves[i])
                                          : wf_f32(t)[i]);
}

/* The largest difference between the file as it reads back and the checkpoint. */
static wf_status compare(const char *file, const wf_weights *w, double *most, wf_err *err)
{
    wf_graph *g = NULL;
    wf_status rc = wf_onnx_read(file, &g, err);

    *most = 0;
    for (size_t i = 0; rc == WF_OK && i < w->n; i++) {
        const wf_value *v = wf_graph_value(g, w->named[i].name);
        const wf_tensor *want = w->named[i].tensor;

        if (!v || !v->known || wf_elems(v->known) != wf_elems(want) ||
            (v->dtype != WF_F32 && v->dtype != WF_F16 && v->dtype != WF_BF16)) {
            rc = wf_fail(err, WF_CORRUPT, NULL, "%s does not read back: \"%.200s\" is missing",
                         file, w->named[i].name);
            break;
        }
        for (int64_t k = 0; k < wf_elems(want); k++) {
            double d = fabs(number_at(v->known, k) - (double)wf_f32(want)[k]);

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
    wf_graph *g = NULL;
    wf_ckpt *c = NULL;
    wf_weights w = {0};
    double most;
    wf_status rc;

    wf_compile_spec_of_job(job, WF_COMPILE_INFER, NULL, 0, &model, &spec);
    spec.read_weights = wf_pretrained_read;
    rc = wf_weights_read(conf, job, from, &c, &w, err);
    if (rc == WF_OK)
        rc = wf_compile_export(&spec, w.n, w.named, &g, err);
    if (rc == WF_OK)
        rc = wf_onnx_write(g, file, err);
    if (rc == WF_OK)
        rc = compare(file, &w, &most, err);
    if (rc == WF_OK)
        wf_term_print(stdout,
                      "%s: %zu initializers updated by name, read back; max |Δ| to %s: %g\n", file,
                      w.n, wf_ckpt_name(c), most);
    wf_weights_close(&w);
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
        "  --from STEP      that checkpoint, and no other; \"best\": the one a callback chose\n"
        "  --cluster FILE   where the job ran; else ./cluster.yaml, else the local cluster\n\n"
        "  weft export digits -o digits.onnx\n",
    .run = run,
};
