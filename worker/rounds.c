/* SPDX-License-Identifier: Apache-2.0 */
/* worker/rounds.c - data that grows: the files of the next round are opened between two epochs,
 * when this worker holds no record of the last one. What cannot be opened is this worker's fault,
 * as a step is that fails: others may be able to read it. */
#include "common/log/log.h"
#include "common/wire/control.h"
#include "worker/state.h"

wf_status wf_round_take(wf_worker *w, const wf_msg *m, wf_err *err)
{
    Weft__Round *body = NULL;

    WF_TRY(wf_control_get(m, &weft__round__descriptor, &body, err));
    wf_control_free(&w->next_round);
    w->next_round = body;
    return WF_OK;
}

static wf_status say_opened(wf_worker *w, wf_err *err)
{
    Weft__Outcome body = WEFT__OUTCOME__INIT;

    body.round = w->round;
    body.train_records = w->job.train_records;
    body.train_digest = w->job.train_digest;
    body.eval_records = w->job.eval_records;
    return wf_session_send(&w->session, WF_ROUND_OK, &body.base, err);
}

/* The master gives a round away once all splits of the one before are done. */
static wf_status open_next(wf_worker *w, wf_err *err)
{
    if (wf_splits_current(w) || !w->conf.ops.open_round)
        return wf_fail(err, WF_PROTO, NULL, "round %u comes while records of round %u are in hand",
                       w->next_round->round, w->round);
    return w->conf.ops.open_round(w->conf.ops.arg, w->next_round, &w->job, err);
}

wf_status wf_round_open(wf_worker *w, wf_err *err)
{
    wf_status rc = WF_OK;
    wf_err why;

    if (!w->next_round || w->state != WF_WORKER_WAITING)
        return WF_OK;
    if (w->next_round->round != w->round)
        rc = wf_err_wrap(&why, open_next(w, &why), "round %u", w->next_round->round);
    if (rc == WF_OK) {
        w->round = w->next_round->round;
        WF_LOG_INFO("worker.round", "round=%u files=%zu records=%lu", w->round,
                    w->next_round->n_files, (unsigned long)w->job.train_records);
        rc = say_opened(w, err);
    } else {
        wf_worker_fault(w, &why);
        rc = WF_OK;
    }
    wf_control_free(&w->next_round);
    return rc;
}
