/* SPDX-License-Identifier: Apache-2.0 */
/* worker/report.c - what a worker reports to the master unasked: its progress, and the fault that
 * it stands still with. */
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "worker/state.h"

#include <string.h>

void wf_worker_fault(wf_worker *w, const wf_err *why)
{
    Weft__Split split = WEFT__SPLIT__INIT;

    if (why->status == WF_BROKEN) { /* the job can do without this process */
        w->broken = *why;
        return;
    }
    if (w->state == WF_WORKER_COMPUTING) {
        const wf_batch_id *batch = wf_loop_batch(w, w->step + 1);

        split.id = batch->split;
        split.epoch = batch->epoch;
        split.begin = split.next = batch->begin;
        split.end = batch->end;
    }
    w->begun = w->step;
    wf_worker_move(w, WF_WORKER_FAILED);
    wf_session_fault(&w->session, why, &split);
}

wf_status wf_measure_list_make(wf_measure_list *to, wf_measure metrics[], uint32_t n, wf_err *err)
{
    size_t starts[WF_MEASURES_MOST + 1] = {0};

    to->sums = (wf_bytes){0};
    to->n = WF_MIN(n, (uint32_t)WF_MEASURES_MOST);
    for (size_t i = 0; i < to->n; i++) {
        starts[i] = to->sums.size;
        if (metrics[i].sums.n)
            wf_sums_encode(&metrics[i].sums, &to->sums);
    }
    starts[to->n] = to->sums.size;
    for (size_t i = 0; i < to->n; i++) { /* once the bytes move no more */
        weft__metric__init(&to->rows[i]);
        to->rows[i].name = metrics[i].name;
        to->rows[i].metric = metrics[i].metric;
        to->rows[i].sum = metrics[i].sum;
        to->rows[i].count = metrics[i].count;
        to->rows[i].sums.len = starts[i + 1] - starts[i];
        to->rows[i].sums.data = to->rows[i].sums.len ? to->sums.data + starts[i] : NULL;
        to->list[i] = &to->rows[i];
    }
    return wf_bytes_check(&to->sums, err);
}

void wf_measure_list_close(wf_measure_list *l)
{
    wf_bytes_close(&l->sums);
}

wf_status wf_report_progress(wf_worker *w, wf_err *err)
{
    Weft__Progress body = WEFT__PROGRESS__INIT;
    Weft__Split open[WF_WORKER_SPLITS], *open_list[WF_WORKER_SPLITS];
    wf_measure_list measures;
    wf_status rc;

    if (!w->session.peer->up)
        return WF_OK;
    rc = wf_measure_list_make(&measures, w->metrics, w->n_metrics, err);
    body.metrics = measures.list;
    body.n_metrics = measures.n;
    body.open = open_list;
    body.n_open = wf_splits_open(w, open, open_list);
    body.steps = w->exchange->acked;
    body.samples = w->samples;
    body.dropped = w->dropped;
    body.compute_ns = w->compute_ns;
    body.wait_ns = w->wait_ns;
    body.transfer_ns = w->transfer_ns;
    body.data_ns = w->data_ns;
    body.pushed_bytes = w->exchange->pushed_bytes;
    body.plain_bytes = w->exchange->plain_bytes;
    w->exchange->pushed_bytes = w->exchange->plain_bytes = 0;
    body.rows_named = w->exchange->rows_named;
    body.rows_cached = w->exchange->rows_cached;
    w->exchange->rows_named = w->exchange->rows_cached = 0;
    w->dropped = 0;
    w->samples = w->compute_ns = w->wait_ns = w->transfer_ns = w->data_ns = 0;
    if (rc == WF_OK)
        rc = wf_session_send(&w->session, WF_PROGRESS, &body.base, err);
    wf_measure_list_close(&measures);
    wf_measures_close(w->metrics, w->n_metrics);
    w->n_metrics = 0;
    return rc;
}

static wf_status add_metric(wf_worker *w, const wf_measure *m, wf_err *err)
{
    wf_measure *to = NULL;

    for (uint32_t i = 0; i < w->n_metrics && !to; i++)
        if (strcmp(w->metrics[i].name, m->name) == 0)
            to = &w->metrics[i];
    if (!to) {
        if (w->n_metrics == WF_MEASURES_MOST)
            return WF_OK;
        to = &w->metrics[w->n_metrics++];
        *to = (wf_measure){0};
        memcpy(to->name, m->name, sizeof to->name);
        memcpy(to->metric, m->metric, sizeof to->metric);
    }
    return wf_measure_merge(to, m, err);
}

wf_status wf_report_add(wf_worker *w, uint32_t n, const wf_measure metrics[], wf_err *err)
{
    for (uint32_t i = 0; i < n; i++)
        WF_TRY(add_metric(w, &metrics[i], err));
    return WF_OK;
}

wf_status wf_report_when_due(wf_worker *w, int64_t now_ns, wf_err *err)
{
    if (now_ns - w->reported_ns < w->conf.progress_ns || !w->session.peer->up)
        return WF_OK;
    w->reported_ns = now_ns;
    return wf_report_progress(w, err);
}
