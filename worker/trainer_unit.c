/* SPDX-License-Identifier: Apache-2.0 */
/* worker/trainer_unit.c - units of evaluations. */
#include "common/base/size.h"
#include "common/data/reader.h"
#include "common/exec/exec.h"
#include "common/log/log.h"
#include "worker/trainer_state.h"

static wf_status evaluate_range(wf_trainer *t, uint64_t end, wf_measure m[], uint32_t *n,
                                wf_err *err)
{
    const wf_eval_unit *unit = &t->unit;
    wf_side *s = &t->eval;
    uint64_t first = unit->begin / s->batch;
    const wf_batch *batch;
    wf_status rc;

    /* Passing over whole batches gives each the index that it has in all of the data. */
    if (wf_tables_any(&s->tables) && t->eval_why.status != WF_OK) {
        *err = t->eval_why;
        return t->eval_why.status;
    }
    s->rows = &t->eval_rows;
    s->rows_batch = 0;
    rc = wf_data_reader_open(s->reader, 0, 0, 0, end, first, err);
    while (rc == WF_OK && (rc = wf_data_reader_next(s->reader, &batch, err)) == WF_OK && batch) {
        wf_plan *p = NULL;

        rc = wf_side_plan(s, 0, batch->n, &p, err);
        if (rc == WF_OK) {
            rc = wf_side_bind(s, p, unit->exchange, unit->set, batch, err);
        }
        if (rc == WF_OK)
            rc =
                wf_plan_run(p, &(wf_step_key){t->start->seed, 0, 0, batch->index}, NULL, NULL, err);
        if (rc == WF_OK)
            rc = wf_side_measure(s, p, batch->n, m, n, err);
        s->rows_batch++;
        wf_data_reader_release(s->reader, &batch);
    }
    wf_data_reader_cancel(s->reader);
    return rc;
}

wf_status wf_trainer_make_unit(wf_trainer *t, wf_worker *w, wf_err *err)
{
    wf_measure m[WF_MEASURES_MOST] = {0};
    wf_eval_result out = {.metrics = m};
    wf_status rc;

    if (wf_trainer_join_opening(t, &out.why) != WF_OK) { /* as before a step (trainer_step.c) */
        wf_worker_fault(w, &out.why);
        return WF_OK;
    }
    out.why.status = WF_OK;
    if (t->eval.reader) {
        out.records = wf_dataset_records(t->eval.data);
        out.why.status =
            evaluate_range(t, WF_MIN(t->unit.end, out.records), m, &out.n_metrics, &out.why);
    }
    if (out.why.status != WF_OK)
        WF_LOG_ERROR("worker.eval_failed", "why=\"%s\"", out.why.what);
    rc = wf_worker_on_evaluated(w, &out, err);
    wf_measures_close(m, WF_MEASURES_MOST);
    return rc;
}
