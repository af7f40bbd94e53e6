/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/predict.c - what a model says of records in files. Inputs of a job go through its
 * data.map, as in training; those of an ONNX file are fed as they are, as by whoever exported it.
 */
#include "cmd/cli/cli.h"
#include "cmd/cli/library.h"
#include "cmd/cli/term.h"
#include "common/base/file.h"
#include "common/kernels/pool.h"
#include "common/session/npy.h"
#include "common/tensor/tensor.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { MOST_FEEDS = 64, BATCH = 256 };

typedef struct request {
    const char *what, *cluster, *from, *out;
    wf_words inputs; /* NAME=FILE */
    weft_run_options options;

    wf_trained trained; /* of a job; all zero for a file */
    weft_model *model;
    char names[MOST_FEEDS][256];
    weft_tensor *tensors[MOST_FEEDS];
    weft_feed feeds[MOST_FEEDS];
    size_t n;
} request;

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

static wf_status open_model(request *r, wf_err *err)
{
    weft_error e;

    if (ends_with(r->what, ".onnx"))
        return weft_model_open(r->what, &r->model, &e) == WEFT_OK ? WF_OK
                                                                  : wf_library_fail(&e, err);
    WF_TRY(wf_trained_job(r->cluster, r->what, &r->trained, err));
    WF_TRY(wf_trained_weights(&r->trained, r->from, err));
    return weft_model_of_job(r->trained.job, r->trained.weights, &r->model, &e) == WEFT_OK
               ? WF_OK
               : wf_library_fail(&e, err);
}

/* ---- inputs ---- */

/* The dtype of the model's input; 0 when there is no such input, which weft_model_predict says. */
static weft_dtype dtype_of(const weft_model *m, const char *name)
{
    weft_port port;

    for (size_t i = 0; weft_model_port(m, WEFT_INPUT, i, &port, NULL) == WEFT_OK; i++)
        if (strcmp(port.name, name) == 0)
            return port.dtype;
    return (weft_dtype)0;
}

static wf_status read_file(request *r, const char *path, weft_tensor **out, wf_err *err)
{
    wf_tensor *t = NULL;
    weft_error e = {0};
    weft_code rc;

    if (r->trained.job)
        return weft_job_records(r->trained.job, r->trained.weights, r->names[r->n], path,
                                dtype_of(r->model, r->names[r->n]), out, &e) == WEFT_OK
                   ? WF_OK
                   : wf_library_fail(&e, err);
    WF_TRY(wf_npy_read(path, &t, err));
    rc = weft_tensor_new((weft_dtype)t->dtype, (int32_t)t->rank, t->dims, out, &e);
    if (rc == WEFT_OK && wf_tensor_bytes(t) > 0)
        memcpy((*out)->data, t->data, wf_tensor_bytes(t));
    wf_tensor_free(&t);
    return rc == WEFT_OK ? WF_OK : wf_library_fail(&e, err);
}

static wf_status read_inputs(request *r, wf_err *err)
{
    for (size_t i = 0; i < r->inputs.n; i++) {
        const char *word = r->inputs.word[i], *equals = strchr(word, '=');

        if (!equals || equals == word || (size_t)(equals - word) >= sizeof r->names[0])
            return wf_fail(err, WF_USAGE, "write --input NAME=FILE", "\"%.64s\" names no file",
                           word);
        snprintf(r->names[r->n], sizeof r->names[0], "%.*s", (int)(equals - word), word);
        WF_TRY(read_file(r, equals + 1, &r->tensors[r->n], err));
        r->feeds[r->n] = (weft_feed){r->names[r->n], r->tensors[r->n], equals + 1};
        r->n++;
    }
    return WF_OK;
}

/* ---- outputs ---- */

static wf_status write_one(const char *dir, const char *file, const weft_tensor *t, wf_err *err)
{
    char dims[128];

    WF_TRY(wf_npy_write(dir, file, (wf_dtype)t->dtype, (uint32_t)t->rank, t->shape, t->data, err));
    wf_term_print(stdout, "%s%s%s.npy: %s%s\n", strcmp(dir, ".") == 0 ? "" : dir,
                  strcmp(dir, ".") == 0 ? "" : "/", file, weft_dtype_name(t->dtype),
                  wf_dims_str((uint32_t)t->rank, t->shape, dims, sizeof dims));
    return WF_OK;
}

/* -o FILE.npy holds the one output; of several each has its file in the folder. */
static wf_status write_outputs(const request *r, const weft_list *results, wf_err *err)
{
    char path[PATH_MAX], *slash;
    size_t n = weft_list_count(results);

    if (!ends_with(r->out, ".npy")) {
        WF_TRY(wf_make_dirs(r->out, err));
        for (size_t i = 0; i < n; i++)
            WF_TRY(
                write_one(r->out, weft_list_name(results, i), weft_list_tensor(results, i), err));
        return WF_OK;
    }
    if (n != 1)
        return wf_fail(err, WF_USAGE, "give a folder: -o DIR",
                       "%s has %zu outputs, and %s holds one", r->what, n, r->out);
    snprintf(path, sizeof path, "%.*s", (int)(strlen(r->out) - strlen(".npy")), r->out);
    slash = strrchr(path, '/');
    if (!slash)
        return write_one(".", path, weft_list_tensor(results, 0), err);
    *slash = 0;
    return write_one(slash == path ? "/" : path, slash + 1, weft_list_tensor(results, 0), err);
}

static wf_status predict(const request *r, weft_list **out, wf_err *err)
{
    weft_error e;

    if (weft_model_predict(r->model, r->n, r->feeds, &r->options, out, &e) == WEFT_OK)
        return WF_OK;
    if (e.name[0])
        snprintf(e.hint, sizeof e.hint, "add --input %.60s=FILE", e.name);
    return wf_library_fail(&e, err);
}

static wf_status read_args(int argc, char *argv[], request *r, wf_err *err)
{
    const char *batch = NULL, *threads = NULL;
    unsigned long long number;
    wf_words words;
    const wf_flag flags[] = {{"input", 'i', .words = &r->inputs},
                             {"output", 'o', .value = &r->out},
                             {"from", 0, .value = &r->from},
                             {"batch", 0, .value = &batch},
                             {"threads", 0, .value = &threads},
                             {"cluster", 0, .value = &r->cluster},
                             {0}};

    WF_TRY(wf_args(flags, argc, argv, 1, 1, &words, err));
    r->what = words.word[0];
    if (batch) {
        WF_TRY(wf_arg_u64("--batch", batch, 1, 1 << 24, &number, err));
        r->options.batch = number;
    }
    if (threads) {
        WF_TRY(wf_arg_u64("--threads", threads, 1, WF_POOL_MAX, &number, err));
        r->options.threads = (uint32_t)number;
    }
    if (!r->out)
        return wf_fail(err, WF_USAGE, "add -o OUT.npy", "weft predict needs a file to write to");
    if (r->inputs.n > MOST_FEEDS)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "%zu inputs are given; %d may be", r->inputs.n,
                       MOST_FEEDS);
    return WF_OK;
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    request r = {.options = {.batch = BATCH, .warn = wf_library_warn}};
    weft_list *results = NULL;
    wf_status rc = read_args(argc, argv, &r, err);

    if (rc == WF_OK)
        rc = open_model(&r, err);
    if (rc == WF_OK)
        rc = read_inputs(&r, err);
    if (rc == WF_OK)
        rc = predict(&r, &results, err);
    if (rc == WF_OK)
        rc = write_outputs(&r, results, err);
    weft_list_free(&results);
    for (size_t i = 0; i < MOST_FEEDS; i++)
        weft_tensor_free(&r.tensors[i]);
    weft_model_free(&r.model);
    wf_trained_close(&r.trained);
    return rc;
}

const wf_cmd wf_cmd_predict = {
    .name = "predict",
    .help = "outputs of a trained job or an ONNX file for records in files",
    .usage =
        "weft predict JOB|JOB.yaml|MODEL.onnx --input NAME=FILE ... -o OUT.npy\n"
        "\n"
        "Computes the outputs for all records of the files, in this process. For a job, the files\n"
        "are npy files or files of the job's format; they pass through data.map as in training, "
        "and\n"
        "the weights are those of the newest intact checkpoint. For an ONNX file, they are npy\n"
        "files that the model takes as they are.\n"
        "  -o OUT.npy    the output; a folder with one file each if there are several outputs\n"
        "  --from STEP   use the checkpoint of that step; \"best\": the one a callback chose\n"
        "  --batch N     records at a time (256)\n"
        "  --threads N   number of threads (default: one per processor)\n"
        "  --cluster FILE   the cluster; otherwise ./cluster.yaml, or the local one\n"
        "\n"
        "  weft predict digits --input x=images.npy -o scores.npy\n"
        "  weft predict digits.onnx --input x=rows.npy -o scores.npy\n",
    .run = run,
};
