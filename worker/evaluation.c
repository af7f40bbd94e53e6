/* SPDX-License-Identifier: Apache-2.0 */
/* worker/evaluation.c - a unit of an evaluation: its weights are asked for, the shell evaluates,
 * and the result goes to the master. The weights stay as they are until the next epoch begins. */
#include "common/wire/control.h"
#include "worker/state.h"

wf_status wf_evaluation_on_eval(wf_worker *w, const wf_msg *m, wf_err *err)
{
    Weft__Split *body = NULL;

    WF_TRY(wf_control_get(m, &weft__split__descriptor, &body, err));
    w->eval_wanted = true;
    w->eval_epoch = body->epoch;
    w->eval_id = body->id;
    w->eval_begin = body->begin;
    w->eval_end = body->end;
    wf_control_free(&body);
    return WF_OK;
}

/* Whether the set of evaluations holds what the unit takes, or was asked to. */
static bool is_asked(const wf_worker *w)
{
    return w->eval_set_of == w->eval_epoch + 1 &&
           (!w->job.tables || w->eval_rows_of == w->eval_id + 1);
}

wf_status wf_evaluation_begin(wf_worker *w, wf_err *err)
{
    if (w->state == WF_WORKER_EVALUATING || wf_exchange_in_flight(w->exchange) > 0)
        return WF_OK;
    if (!is_asked(w)) {
        w->eval_set_of = w->eval_epoch + 1;
        w->eval_rows_of = w->eval_id + 1;
        wf_loop_barrier(w);
        if (w->job.tables)
            WF_TRY(w->conf.ops.name_unit(w->conf.ops.arg, w->exchange, WF_EVAL_SET, w->eval_begin,
                                         w->eval_end, err));
        WF_TRY(wf_exchange_want(w->exchange, WF_EVAL_SET, w->step + 1, err));
    }
    if (!wf_exchange_ready(w->exchange, WF_EVAL_SET))
        return WF_OK;
    wf_worker_move(w, WF_WORKER_UNIT_BEGUN);
    w->wait.kind = WF_WAIT_NONE;
    return w->conf.ops.evaluate(w->conf.ops.arg,
                                &(wf_eval_unit){.exchange = w->exchange,
                                                .set = WF_EVAL_SET,
                                                .begin = w->eval_begin,
                                                .end = w->eval_end},
                                err);
}

wf_status wf_worker_on_evaluated(wf_worker *w, const wf_eval_result *r, wf_err *err)
{
    Weft__EvalResult body = WEFT__EVAL_RESULT__INIT;
    wf_measure_list measures;
    wf_status rc;

    if (w->state != WF_WORKER_EVALUATING) /* the job was halted meanwhile */
        return WF_OK;
    if (r->why.status == WF_BROKEN) {
        w->broken = r->why;
        return WF_OK;
    }
    wf_worker_move(w, WF_WORKER_UNIT_ENDED);
    w->eval_wanted = false;
    rc = wf_measure_list_make(&measures, r->metrics, r->n_metrics, err);
    body.metrics = measures.list;
    body.n_metrics = measures.n;
    body.epoch = w->eval_epoch;
    body.id = w->eval_id;
    body.records = r->records;
    if (r->why.status != WF_OK) {
        body.what = (char *)r->why.what;
        body.hint = (char *)r->why.hint;
    }
    if (rc == WF_OK)
        rc = wf_session_send(&w->session, WF_EVAL_RESULT, &body.base, err);
    wf_measure_list_close(&measures);
    return rc;
}
