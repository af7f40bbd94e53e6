/* SPDX-License-Identifier: Apache-2.0 */
/* worker/hold.c - a worker holds for the cut of a checkpoint: it announces that it has reached the
 * place, reports where it is once nothing is in flight, and trains on when the master says so. */
#include "common/wire/control.h"
#include "worker/state.h"

#include <stdlib.h>

void wf_hold_move(wf_worker *w, wf_hold_event event)
{
    w->hold = (wf_hold_state)wf_states_take(&wf_hold_states, w->hold, event, "");
}

bool wf_hold_is_at(const wf_open_split *s, uint64_t next)
{
    return s->cut_at && next + 1 >= s->cut_at;
}

/* Without a master there is no cut, and training goes on (W4): it asks again with a later split. */
wf_status wf_hold_announce(wf_worker *w, wf_open_split *s, wf_err *err)
{
    if (!w->session.peer->up)
        s->cut_at = 0;
    if (w->due_sent || !w->session.peer->up)
        return WF_OK;
    w->due_sent = true;
    return wf_session_send(&w->session, WF_CUT_DUE, NULL, err);
}

wf_status wf_hold_on_cut_open(wf_worker *w, const wf_msg *m, int64_t now_ns, wf_err *err)
{
    wf_chief_abort(w);
    wf_hold_move(w, WF_HOLD_OPENED);
    w->due_sent = false;
    w->cut = m->head.cut;
    return wf_chief_begin(w, m, now_ns, err);
}

void wf_hold_on_resume(wf_worker *w, const wf_msg *m)
{
    if (w->hold == WF_HOLD_FREE || m->head.cut != w->cut)
        return;
    wf_hold_move(w, WF_HOLD_RESUMED);
    w->due_sent = false;
    for (int i = 0; i < WF_WORKER_SPLITS; i++)
        if (w->splits[i].used && wf_hold_is_at(&w->splits[i], w->splits[i].next))
            w->splits[i].cut_at = 0; /* it has been */
}

/* W2: nothing in flight, so the place in the data and the weights say the same. */
wf_status wf_hold_report(wf_worker *w, wf_err *err)
{
    Weft__CutReport body = WEFT__CUT_REPORT__INIT;
    Weft__Split open[WF_WORKER_SPLITS], *open_list[WF_WORKER_SPLITS];
    Weft__Split *rows, **list;
    wf_status rc;

    if (w->hold == WF_HOLD_REPORTED || wf_exchange_in_flight(w->exchange) > 0)
        return WF_OK;
    WF_TRY(wf_splits_settle(w, err));
    rows = calloc(WF_WORKER_FINISHED, sizeof *rows);
    list = calloc(WF_WORKER_FINISHED, sizeof(*list));
    if (rows && list) {
        body.index = w->conf.index;
        body.incarnation = w->conf.incarnation;
        body.steps = w->step;
        body.open = open_list;
        body.n_open = wf_splits_open(w, open, open_list);
        body.finished = list;
        body.n_finished = wf_splits_finished(w, rows, list);
        wf_loop_barrier(w);
        wf_hold_move(w, WF_HOLD_WAS_REPORTED);
        rc = wf_session_send(&w->session, WF_CUT_REPORT, &body.base, err);
    } else {
        rc = wf_fail_nomem(err, WF_WORKER_FINISHED * sizeof *rows);
    }
    free(rows);
    free(list);
    return rc;
}
