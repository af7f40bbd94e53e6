/* SPDX-License-Identifier: Apache-2.0 */
/* lib/predict.c - a model that is open: run, differentiated, and run in batches. */
#include "common/kernels/kernel.h"
#include "lib/run.h"

/* The model's threads, as many as the options say. Plans at hand use the old ones. */
static wf_status find_pool(weft_model *m, const weft_run_options *options, wf_err *err)
{
    uint32_t n = wf_lib_threads(options->threads);

    if (m->pool && m->threads == n)
        return WF_OK;
    wf_predictor_free(&m->predictor);
    wf_pool_free(&m->pool);
    WF_TRY(wf_pool_new(n, &m->pool, err));
    m->threads = n;
    return WF_OK;
}

static weft_code run(weft_model *m, const char *loss, const wf_lib_run *how, size_t n_fetches,
                     const char *const fetches[], weft_list **out, weft_error *error)
{
    wf_once o = {.name = m->name,
                 .graph = m->graph,
                 .loss = loss,
                 .n_fetches = n_fetches,
                 .fetches = fetches};
    char unfed[WF_UNFED_NAME] = "";
    wf_err err = {0};
    wf_status rc;

    rc = find_pool(m, how->options, &err);
    o.pool = m->pool;
    if (rc == WF_OK)
        rc = wf_lib_once(how, &o, out, unfed, &err);
    return wf_lib_run_end(rc, unfed, &err, error);
}

weft_code weft_model_run(weft_model *m, size_t n_feeds, const weft_feed feeds[], size_t n_fetches,
                         const char *const fetches[], const weft_run_options *options,
                         weft_list **out, weft_error *error)
{
    WF_LIB_NEED(out);
    *out = NULL;
    WF_LIB_NEED(m);
    WF_LIB_NEED(feeds || !n_feeds);
    WF_LIB_NEED(fetches || !n_fetches);
    return run(m, NULL, &WF_LIB_RUN(n_feeds, feeds, options), n_fetches, fetches, out, error);
}

weft_code weft_model_gradient(weft_model *m, const char *loss, size_t n_feeds,
                              const weft_feed feeds[], size_t n_wrt, const char *const wrt[],
                              const weft_run_options *options, weft_list **out, weft_error *error)
{
    WF_LIB_NEED(out);
    *out = NULL;
    WF_LIB_NEED(m);
    WF_LIB_NEED(loss);
    WF_LIB_NEED(feeds || !n_feeds);
    WF_LIB_NEED(wrt || !n_wrt);
    return run(m, loss, &WF_LIB_RUN(n_feeds, feeds, options), n_wrt, wrt, out, error);
}

static wf_status predict(weft_model *m, const wf_lib_run *how, wf_named_list *results,
                         char unfed[WF_UNFED_NAME], wf_err *err)
{
    wf_predict p = {.batch = how->options->batch,
                    .seed = how->options->seed,
                    .limit_bytes = how->options->memory_limit,
                    .limit_hint = wf_lib_limit_hint};
    wf_lib_feeds feeds = {0};
    wf_status rc;

    rc = find_pool(m, how->options, err);
    if (rc == WF_OK && how->options->device)
        rc = wf_device_open(how->options->device, &p.device, err);
    if (rc == WF_OK && m->device != p.device) { /* plans are for one */
        wf_predictor_free(&m->predictor);
        m->device = p.device;
    }
    if (rc == WF_OK && !m->predictor)
        rc = wf_predictor_new(m->graph, m->name, how->options->warn, how->options->arg,
                              &m->predictor, err);
    if (rc == WF_OK)
        rc = wf_lib_feeds_take(how->n_feeds, how->feeds, &feeds, err);
    p.pool = m->pool;
    p.n_feeds = feeds.n;
    p.feeds = feeds.feeds;
    if (rc == WF_OK)
        rc = wf_predictor_run(m->predictor, &p, results, unfed, err);
    wf_lib_feeds_close(&feeds);
    return rc;
}

weft_code weft_model_predict(weft_model *m, size_t n_feeds, const weft_feed feeds[],
                             const weft_run_options *options, weft_list **out, weft_error *error)
{
    char unfed[WF_UNFED_NAME] = "";
    wf_named_list results = {0};
    wf_err err = {0};
    wf_status rc;

    WF_LIB_NEED(out);
    *out = NULL;
    WF_LIB_NEED(m);
    WF_LIB_NEED(feeds || !n_feeds);
    rc = predict(m, &WF_LIB_RUN(n_feeds, feeds, options), &results, unfed, &err);
    if (rc == WF_OK)
        rc = wf_lib_list(&results, "", out, &err);
    wf_named_close(&results);
    return wf_lib_run_end(rc, unfed, &err, error);
}
