/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/export.c - a trained model as an ONNX file: the job's model with a checkpoint's weights.
 */
#include "cmd/cli/cli.h"
#include "cmd/cli/exported.h"
#include "cmd/cli/library.h"
#include "common/tensor/dtype.h"

#include <math.h>

/* Element i of a float32 tensor, or of halves that it was rounded to. */
static double number_at(const weft_tensor *t, int64_t i)
{
    const uint16_t *halves = t->data;

    return (double)(t->dtype == WEFT_F16    ? wf_f16_to_f32(halves[i])
                    : t->dtype == WEFT_BF16 ? wf_bf16_to_f32(halves[i])
                                            : ((const float *)t->data)[i]);
}

static bool has_numbers(const weft_tensor *t, const weft_tensor *like)
{
    return weft_tensor_elements(t) == weft_tensor_elements(like) &&
           (t->dtype == WEFT_F32 || t->dtype == WEFT_F16 || t->dtype == WEFT_BF16);
}

/* The largest difference between the model as it reads back and the checkpoint. */
static wf_status compare(const weft_model *m, const char *file, const weft_list *weights,
                         double *most, wf_err *err)
{
    *most = 0;
    for (size_t i = 0; i < weft_list_count(weights); i++) {
        const weft_tensor *want = weft_list_tensor(weights, i);
        const char *name = weft_list_name(weights, i);
        weft_tensor *t = NULL;

        if (weft_model_weight(m, name, &t, NULL) != WEFT_OK || !has_numbers(t, want)) {
            weft_tensor_free(&t);
            return wf_fail(err, WF_CORRUPT, NULL, "%s does not read back: \"%.200s\" is missing",
                           file, name);
        }
        for (int64_t k = 0; k < weft_tensor_elements(want); k++)
            *most = fmax(*most, fabs(number_at(t, k) - number_at(want, k)));
        weft_tensor_free(&t);
    }
    return WF_OK;
}

static wf_status write_model(const wf_trained *t, const char *file, bool model_only, wf_err *err)
{
    weft_model *m = NULL, *back = NULL;
    char mapped[256] = "";
    double most = 0;
    weft_error e;
    wf_status rc = WF_OK;

    if (weft_model_of_job(t->job, t->weights, &m, &e) != WEFT_OK ||
        (!model_only &&
         weft_model_take_map(m, t->job, t->weights, mapped, sizeof mapped, &e) != WEFT_OK) ||
        weft_model_write(m, file, &e) != WEFT_OK || weft_model_open(file, &back, &e) != WEFT_OK)
        rc = wf_library_fail(&e, err);
    if (rc == WF_OK)
        rc = compare(back, file, t->weights, &most, err);
    if (rc == WF_OK)
        wf_exported_print(t, back, file, most, mapped);
    weft_model_free(&m);
    weft_model_free(&back);
    return rc;
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    const char *file = NULL, *from = NULL, *cluster = NULL;
    bool model_only = false;
    wf_trained t = {0};
    wf_words words;
    const wf_flag flags[] = {{"output", 'o', .value = &file},
                             {"from", 0, .value = &from},
                             {"model-only", 0, .set = &model_only},
                             {"cluster", 0, .value = &cluster},
                             {0}};
    wf_status rc;

    WF_TRY(wf_args(flags, argc, argv, 1, 1, &words, err));
    if (!file)
        return wf_fail(err, WF_USAGE, "add -o model.onnx", "weft export wants a file to write");
    rc = wf_trained_job(cluster, words.word[0], &t, err);
    if (rc == WF_OK)
        rc = wf_trained_weights(&t, from, err);
    if (rc == WF_OK)
        rc = write_model(&t, file, model_only, err);
    wf_trained_close(&t);
    return rc;
}

const wf_cmd wf_cmd_export = {
    .name = "export",
    .help = "write a trained model as an ONNX file",
    .usage =
        "weft export JOB|JOB.yaml -o MODEL.onnx [--from STEP] [--model-only]\n"
        "\n"
        "Writes the job's model with the weights of its newest intact checkpoint, for inference: "
        "no\n"
        "loss, no labels, no dropout. Inputs, outputs and initializers keep their names. The file\n"
        "is read back and compared. If data.map standardises an input, the exported model does so\n"
        "itself and takes records as they are in the data files.\n"
        "  -o MODEL.onnx    the file to write\n"
        "  --from STEP      use the checkpoint of that step; \"best\": the one a callback chose\n"
        "  --model-only     leave standardising out: the inputs are the output of data.map\n"
        "  --cluster FILE   where the job ran; otherwise ./cluster.yaml, or the local cluster\n"
        "\n"
        "  weft export digits -o digits.onnx\n",
    .run = run,
};
