/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/export.c - a trained model as an ONNX file: the job's model with a checkpoint's weights.
 */
#include "cmd/cli/cli.h"
#include "cmd/cli/exported.h"
#include "cmd/cli/library.h"
#include "cmd/cli/read_back.h"
#include "cmd/cli/term.h"

static wf_status make(const wf_trained *t, bool model_only, char *mapped, size_t size,
                      weft_model **m, wf_err *err)
{
    weft_error e;

    if (weft_model_of_job(t->job, t->weights, m, &e) != WEFT_OK ||
        (!model_only && weft_model_take_map(*m, t->job, t->weights, mapped, size, &e) != WEFT_OK))
        return wf_library_fail(&e, err);
    return WF_OK;
}

static wf_status write_model(const weft_model *m, const char *file, char *note, size_t size,
                             wf_err *err)
{
    weft_error e;

    if (weft_model_note(m, note, size, &e) != WEFT_OK || weft_model_write(m, file, &e) != WEFT_OK)
        return wf_library_fail(&e, err);
    return WF_OK;
}

static wf_status read_back(wf_read_back *r, const wf_trained *t, const char *file,
                           const char *mapped, wf_err *err)
{
    weft_model *back = NULL;
    weft_error e;
    wf_status rc;

    if (weft_model_open(file, &back, &e) != WEFT_OK)
        return wf_library_fail(&e, err);
    rc = wf_read_back_compare(r, t, back, file, err);
    if (rc == WF_OK)
        wf_exported_print(t, r, back, file, mapped);
    weft_model_free(&back);
    return rc;
}

static wf_status export(wf_trained *t, const char *file, bool model_only, wf_err *err)
{
    char mapped[256] = "", note[256] = "";
    wf_read_back r = {0};
    weft_model *m = NULL;
    wf_status rc;

    rc = make(t, model_only, mapped, sizeof mapped, &m, err);
    if (rc == WF_OK)
        rc = write_model(m, file, note, sizeof note, err);
    if (rc == WF_OK)
        rc = wf_read_back_begin(&r, t, m, err);
    weft_model_free(&m);
    if (rc == WF_OK)
        rc = read_back(&r, t, file, mapped, err);
    if (rc == WF_OK && note[0])
        wf_term_print(stdout, "%s\n", note);
    wf_read_back_close(&r);
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
        rc = export(&t, file, model_only, err);
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
        "itself and takes records as they are in the data files. Ids of an unbounded table are\n"
        "looked up by LabelEncoder; those without a row get the mean of initial values.\n"
        "  -o MODEL.onnx    the file to write\n"
        "  --from STEP      use the checkpoint of that step; \"best\": the one a callback chose\n"
        "  --model-only     leave standardising out: the inputs are the output of data.map\n"
        "  --cluster FILE   where the job ran; otherwise ./cluster.yaml, or the local cluster\n"
        "\n"
        "  weft export digits -o digits.onnx\n",
    .run = run,
};
