/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/once.c */
#include "cmd/cli/once.h"
#include "cmd/cli/library.h"
#include "cmd/cli/term.h"
#include "common/base/file.h"
#include "common/kernels/pool.h"
#include "common/session/npy.h"

#include <stdio.h>
#include <string.h>

enum { MOST_FEEDS = 64, MOST_NAMED = 16 };

const char wf_memory_hint[] =
    "neither the file nor what it is fed accounts for that much; if it is "
    "meant, say how much with --memory-limit";

typedef struct once {
    const char *model;
    wf_words inputs;  /* NAME=FILE.npy */
    wf_words fetches; /* names of values; none: all outputs */
    const char *loss; /* of `grad`; NULL for `run` */
    const char *output_dir;
    weft_run_options options;
    char names[MOST_FEEDS][256];
    wf_tensor *tensors[MOST_FEEDS];
    weft_tensor views[MOST_FEEDS];
    weft_feed feeds[MOST_FEEDS];
    size_t n_feeds;
} once;

static wf_status read_args(int argc, char *argv[], bool has_loss, once *o, wf_err *err)
{
    const char *seed = "0", *threads = NULL, *limit = NULL;
    unsigned long long number;
    wf_words words;
    const wf_flag flags[] = {{"input", 'i', .words = &o->inputs},
                             {"output-dir", 'o', .value = &o->output_dir},
                             {"seed", 0, .value = &seed},
                             {"threads", 0, .value = &threads},
                             {"device", 0, .value = &o->options.device},
                             {"memory-limit", 0, .value = &limit},
                             {has_loss ? "loss" : "fetch", 0, .value = has_loss ? &o->loss : NULL,
                              .words = has_loss ? NULL : &o->fetches},
                             {0}};

    WF_TRY(wf_args(flags, argc, argv, 1, 1, &words, err));
    o->model = words.word[0];
    WF_TRY(wf_arg_u64("--seed", seed, 0, INT64_MAX, &number, err));
    o->options.seed = number;
    if (threads) {
        WF_TRY(wf_arg_u64("--threads", threads, 1, WF_POOL_MAX, &number, err));
        o->options.threads = (uint32_t)number;
    }
    if (limit)
        WF_TRY(wf_arg_bytes("--memory-limit", limit, &o->options.memory_limit, err));
    if (!o->output_dir)
        return wf_fail(err, WF_USAGE, "add --output-dir DIR", "weft %s wants a folder to write to",
                       argv[0]);
    if (has_loss && !o->loss)
        return wf_fail(err, WF_USAGE, "add --loss NAME", "weft grad wants the name of the loss");
    return WF_OK;
}

static wf_status read_feed(once *o, const char *word, wf_err *err)
{
    const char *equals = strchr(word, '=');
    size_t at = o->n_feeds;
    wf_tensor *t;

    if (!equals || equals == word || (size_t)(equals - word) >= sizeof o->names[0])
        return wf_fail(err, WF_USAGE, "write --input NAME=FILE.npy", "\"%.64s\" names no file",
                       word);
    snprintf(o->names[at], sizeof o->names[0], "%.*s", (int)(equals - word), word);
    WF_TRY(wf_npy_read(equals + 1, &o->tensors[at], err));
    t = o->tensors[at];
    o->views[at] = (weft_tensor){
        .data = t->data, .dtype = (weft_dtype)t->dtype, .rank = (int32_t)t->rank, .shape = t->dims};
    o->feeds[at] = (weft_feed){o->names[at], &o->views[at], equals + 1};
    o->n_feeds++;
    return WF_OK;
}

static wf_status read_feeds(once *o, wf_err *err)
{
    if (o->inputs.n > MOST_FEEDS)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "%zu inputs are given; %d may be", o->inputs.n,
                       MOST_FEEDS);
    for (size_t i = 0; i < o->inputs.n; i++)
        WF_TRY(read_feed(o, o->inputs.word[i], err));
    return WF_OK;
}

/* What the library says to do, in the words of the command line. */
static wf_status fail(weft_error *e, wf_err *err)
{
    if (e->name[0])
        snprintf(e->hint, sizeof e->hint, "add --input %.60s=FILE.npy", e->name);
    else if (strstr(e->hint, "memory_limit"))
        snprintf(e->hint, sizeof e->hint, "%s", wf_memory_hint);
    return wf_library_fail(e, err);
}

static wf_status run(const once *o, weft_list **out, wf_err *err)
{
    weft_error e;
    weft_code rc;

    if (o->loss)
        rc = weft_gradient_file(o->model, o->loss, o->n_feeds, o->feeds, 0, NULL, &o->options, out,
                                &e);
    else
        rc = weft_run_file(o->model, o->n_feeds, o->feeds, o->fetches.n, o->fetches.word,
                           &o->options, out, &e);
    return rc == WEFT_OK ? WF_OK : fail(&e, err);
}

static wf_status write_results(const once *o, const weft_list *results, wf_err *err)
{
    size_t n = weft_list_count(results);

    WF_TRY(wf_make_dirs(o->output_dir, err));
    for (size_t i = 0; i < n; i++) {
        const weft_tensor *t = weft_list_tensor(results, i);

        WF_TRY(wf_npy_write(o->output_dir, weft_list_name(results, i), (wf_dtype)t->dtype,
                            (uint32_t)t->rank, t->shape, t->data, err));
    }
    wf_term_print(stdout, "%s: %zu %s written to %s\n", o->model, n, n == 1 ? "file" : "files",
                  o->output_dir);
    for (size_t i = 0; i < n && i < MOST_NAMED; i++) {
        const weft_tensor *t = weft_list_tensor(results, i);
        char file[WF_NPY_NAME], dims[128];

        wf_term_print(stdout, "  %s  %s%s\n",
                      wf_npy_name(weft_list_name(results, i), file, sizeof file),
                      wf_dtype_name((wf_dtype)t->dtype),
                      wf_dims_str((uint32_t)t->rank, t->shape, dims, sizeof dims));
    }
    if (n > MOST_NAMED)
        wf_term_print(stdout, "  and %zu more\n", n - MOST_NAMED);
    return WF_OK;
}

wf_status wf_once_command(int argc, char *argv[], bool has_loss, wf_err *err)
{
    once o = {.options.warn = wf_library_warn};
    weft_list *results = NULL;
    wf_status rc;

    rc = read_args(argc, argv, has_loss, &o, err);
    if (rc == WF_OK)
        rc = read_feeds(&o, err);
    if (rc == WF_OK)
        rc = run(&o, &results, err);
    if (rc == WF_OK)
        rc = write_results(&o, results, err);
    weft_list_free(&results);
    for (size_t i = 0; i < MOST_FEEDS; i++)
        wf_tensor_free(&o.tensors[i]);
    return rc;
}
