/* SPDX-License-Identifier: Apache-2.0 */
/* lib/run.c - what a run needs beside a model: feeds, threads; files that are run once. */
#include "lib/run.h"
#include "common/base/size.h"
#include "common/kernels/kernel.h"
#include "common/session/once.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char wf_lib_limit_hint[] = "neither the model nor what it is fed accounts for that much; if "
                                 "it is meant, say how much as memory_limit";

const weft_run_options wf_lib_run_defaults;

uint32_t wf_lib_threads(uint32_t wanted)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    if (wanted)
        return wanted;
    return n < 1 ? 1 : (uint32_t)WF_MIN(n, (long)WF_POOL_MAX);
}

wf_status wf_lib_feeds_take(size_t n, const weft_feed feeds[], wf_lib_feeds *out, wf_err *err)
{
    *out = (wf_lib_feeds){.feeds = calloc(n + 1, sizeof *out->feeds),
                          .tensors = calloc(n + 1, sizeof(wf_tensor *))};
    if (!out->feeds || !out->tensors)
        return wf_fail_nomem(err, n * sizeof *out->feeds);
    for (; out->n < n; out->n++) {
        const weft_feed *from = &feeds[out->n];
        wf_tensor **t = &out->tensors[out->n];

        if (!from->name)
            return wf_fail(err, WF_INVALID, NULL, "the name of feed %zu is NULL", out->n);
        WF_TRY(wf_err_wrap(err, wf_lib_take(from->tensor, "the feed", t, err), "input \"%.64s\"",
                           from->name));
        out->feeds[out->n] = (wf_feed){from->name, from->origin ? from->origin : "the feed", *t};
    }
    return WF_OK;
}

void wf_lib_feeds_close(wf_lib_feeds *f)
{
    for (size_t i = 0; i < f->n; i++)
        wf_tensor_free(&f->tensors[i]);
    free(f->tensors);
    free(f->feeds);
    *f = (wf_lib_feeds){0};
}

static wf_status check_names(size_t n, const char *const names[], wf_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (!names[i])
            return wf_fail(err, WF_INVALID, NULL, "name %zu of those wanted is NULL", i);
    return WF_OK;
}

wf_status wf_lib_once(const wf_lib_run *run, wf_once *o, weft_list **out, char unfed[WF_UNFED_NAME],
                      wf_err *err)
{
    wf_named_list results = {0};
    wf_lib_feeds feeds = {0};
    wf_status rc;

    rc = check_names(o->n_fetches, o->fetches, err);
    if (rc == WF_OK)
        rc = wf_lib_feeds_take(run->n_feeds, run->feeds, &feeds, err);
    o->n_feeds = feeds.n;
    o->feeds = feeds.feeds;
    o->seed = run->options->seed;
    o->limit_bytes = run->options->memory_limit;
    o->limit_hint = wf_lib_limit_hint;
    o->warn = run->options->warn;
    o->arg = run->options->arg;
    if (rc == WF_OK && run->options->device)
        rc = wf_device_open(run->options->device, &o->device, err);
    if (rc == WF_OK)
        rc = wf_once_run(o, &results, unfed, err);
    if (rc == WF_OK)
        rc = wf_lib_list(&results, "", out, err);
    wf_lib_feeds_close(&feeds);
    wf_named_close(&results);
    return rc;
}

weft_code wf_lib_run_end(wf_status rc, const char *unfed, const wf_err *err, weft_error *error)
{
    wf_lib_end(rc, err, error);
    if (error && rc != WF_OK)
        strncpy(error->name, unfed, sizeof error->name - 1);
    return (weft_code)rc;
}

/* A file, with threads of its own for the time of the call. */
static weft_code run_file(const char *path, const char *loss, const wf_lib_run *run,
                          size_t n_fetches, const char *const fetches[], weft_list **out,
                          weft_error *error)
{
    wf_once o = {.name = path, .loss = loss, .n_fetches = n_fetches, .fetches = fetches};
    char unfed[WF_UNFED_NAME] = "";
    wf_pool *pool = NULL;
    wf_err err = {0};
    wf_status rc;

    rc = wf_pool_new(wf_lib_threads(run->options->threads), &pool, &err);
    o.pool = pool;
    if (rc == WF_OK)
        rc = wf_lib_once(run, &o, out, unfed, &err);
    wf_pool_free(&pool);
    return wf_lib_run_end(rc, unfed, &err, error);
}

weft_code weft_run_file(const char *path, size_t n_feeds, const weft_feed feeds[], size_t n_fetches,
                        const char *const fetches[], const weft_run_options *options,
                        weft_list **out, weft_error *error)
{
    WF_LIB_NEED(out);
    *out = NULL;
    WF_LIB_NEED(path);
    WF_LIB_NEED(feeds || !n_feeds);
    WF_LIB_NEED(fetches || !n_fetches);
    return run_file(path, NULL, &WF_LIB_RUN(n_feeds, feeds, options), n_fetches, fetches, out,
                    error);
}

weft_code weft_gradient_file(const char *path, const char *loss, size_t n_feeds,
                             const weft_feed feeds[], size_t n_wrt, const char *const wrt[],
                             const weft_run_options *options, weft_list **out, weft_error *error)
{
    WF_LIB_NEED(out);
    *out = NULL;
    WF_LIB_NEED(path);
    WF_LIB_NEED(loss);
    WF_LIB_NEED(feeds || !n_feeds);
    WF_LIB_NEED(wrt || !n_wrt);
    return run_file(path, loss, &WF_LIB_RUN(n_feeds, feeds, options), n_wrt, wrt, out, error);
}
