/* SPDX-License-Identifier: Apache-2.0 */
/* worker/worker.c - the front of a worker: it is made, messages come in, messages go out. */
#include "common/log/log.h"
#include "common/wire/control.h"
#include "worker/state.h"

#include <stdlib.h>

static void stamp(const void *role, wf_header *head)
{
    const wf_worker *w = role;

    head->job = w->job_number;
    head->generation = w->generation;
    head->view = w->view;
    head->cut = w->cut;
    head->step = w->step;
}

wf_status wf_worker_new(const wf_worker_conf *conf, wf_net *net, wf_peer *master, wf_worker **out,
                        wf_err *err)
{
    wf_worker *w = calloc(1, sizeof *w);

    if (!w)
        return wf_fail_nomem(err, sizeof *w);
    w->conf = *conf;
    w->net = net;
    w->session = (wf_session){.net = net,
                              .peer = master,
                              .self = {WF_ROLE_WORKER, conf->index},
                              .supervisor = conf->session,
                              .stamp = stamp,
                              .role = w};
    *out = w;
    return WF_OK;
}

void wf_worker_free(wf_worker **w)
{
    if (!*w)
        return;
    wf_member_halt(*w);
    free((*w)->ps);
    free((*w)->ps_address);
    free((*w)->fellows);
    free(*w);
    *w = NULL;
}

void wf_worker_move(wf_worker *w, wf_worker_event event)
{
    w->state = (wf_worker_state)wf_states_take(&wf_worker_states, w->state, event, "");
}

void wf_worker_spent(wf_worker *w, const wf_worker_times *spent)
{
    w->wait_ns += (uint64_t)spent->wait_ns;
    w->transfer_ns += (uint64_t)spent->transfer_ns;
    w->data_ns += (uint64_t)spent->data_ns;
}

uint32_t wf_worker_step(const wf_worker *w)
{
    return w->step;
}

uint32_t wf_worker_begun(const wf_worker *w)
{
    return w->begun;
}

uint16_t wf_worker_generation(const wf_worker *w)
{
    return w->generation;
}

uint16_t wf_worker_job_number(const wf_worker *w)
{
    return w->job_number;
}

uint32_t wf_worker_base(const wf_worker *w)
{
    return w->exchange ? w->exchange->base : 0;
}

const wf_exchange *wf_worker_exchange(const wf_worker *w)
{
    return w->exchange;
}

uint32_t wf_worker_clock(const wf_worker *w)
{
    return w->exchange && w->exchange->is_in ? w->step + 1 + w->exchange->shift : 0;
}

bool wf_worker_waits_for_weights(const wf_worker *w)
{
    return w->exchange && w->state == WF_WORKER_WAITING && w->hold == WF_HOLD_FREE &&
           w->exchange->set_step[(w->step + 1) % WF_STEP_SETS] == w->step + 1;
}

/* The master's, for an exchange whose updates are made in this process. */
static wf_status on_tune(wf_worker *w, const wf_msg *m, wf_err *err)
{
    Weft__Tune *body = NULL;
    wf_status rc;

    WF_TRY(wf_control_get(m, &weft__tune__descriptor, &body, err));
    rc = wf_exchange_tune(w->exchange, body->learning_rate, err);
    if (rc == WF_OK)
        rc = wf_session_send(&w->session, WF_TUNE_OK, &body->base, err);
    wf_control_free(&body);
    return rc;
}

static wf_status on_job_message(wf_worker *w, const wf_msg *m, int64_t now_ns, wf_err *err)
{
    switch (m->head.kind) {
    case WF_SPLIT:
        return wf_splits_on_grant(w, m, err);
    case WF_SPLIT_DONE_OK:
        return wf_splits_on_confirmed(w, m, err);
    case WF_EVAL:
        return wf_evaluation_on_eval(w, m, err);
    case WF_ROUND:
        return wf_round_take(w, m, err);
    case WF_TUNE:
        return on_tune(w, m, err);
    case WF_VIEW:
        return wf_member_on_view(w, m, err);
    case WF_CUT_OPEN:
        return wf_hold_on_cut_open(w, m, now_ns, err);
    case WF_CUT_RESUME:
        wf_hold_on_resume(w, m);
        return WF_OK;
    case WF_CUT_REPORT:
        return wf_chief_on_report(w, m, now_ns, err);
    case WF_CUT_COMMIT:
        return wf_chief_on_commit(w, m, now_ns, err);
    case WF_CUT_ABORT:
        wf_chief_abort(w);
        return WF_OK;
    default:
        return WF_OK;
    }
}

static wf_status on_master(wf_worker *w, const wf_msg *m, int64_t now_ns, wf_err *err)
{
    if (m->head.kind == WF_DISMISS)
        return wf_session_on_dismiss(&w->session, m, err);
    if (m->head.kind == WF_START)
        return wf_member_start(w, m, err);
    if (m->head.kind == WF_HALT) { /* the link is in order: it is not of an older time */
        wf_member_halt(w);
        return WF_OK;
    }
    if (!w->start || m->head.job != w->job_number || m->head.generation != w->generation)
        return WF_OK;
    return on_job_message(w, m, now_ns, err);
}

static wf_status on_ps(wf_worker *w, const wf_event *ev, int64_t now_ns, wf_err *err)
{
    if (!w->exchange || ev->msg->head.job != w->job_number ||
        ev->msg->head.generation != w->generation)
        return WF_OK;
    WF_TRY(wf_exchange_on_message(w->exchange, ev->peer, ev->msg, now_ns, err));
    return wf_chief_advance(w, now_ns, err);
}

/* A peer's bad message is dropped with a word; what the master says wrongly ends the job. */
static wf_status on_message(wf_worker *w, wf_event *ev, int64_t now_ns, wf_err *err)
{
    wf_status rc = ev->peer == w->session.peer ? on_master(w, ev->msg, now_ns, err)
                                               : on_ps(w, ev, now_ns, err);

    if (rc != WF_PROTO)
        return rc;
    WF_LOG_WARN("worker.bad_message", "kind=%s why=\"%s\"", wf_kind_name(ev->msg->head.kind),
                err->what);
    return WF_OK;
}

/* Links of stages are apart from those of workers that add up gradients: a worker dials those with
 * higher numbers, and not lower ones. */
static bool is_of_stages(const wf_worker *w, const wf_event *ev)
{
    const wf_peer *p = ev->peer;

    if (!w->conf.ops.on_stage || p->task.role != WF_ROLE_WORKER || ev->kind == WF_EV_REFUSED)
        return false;
    return p->address[0] ? p->task.index > w->conf.index : p->task.index < w->conf.index;
}

/* What goes wrong there is this worker's fault if it has the job. */
wf_status wf_worker_on_stage(wf_worker *w, const wf_event *ev, int64_t now_ns, wf_err *err)
{
    const wf_worker_of of = {w->net, w->conf.disk};
    wf_err why = {0};
    wf_status rc = w->conf.ops.on_stage(w->conf.ops.arg, &of, ev, &why);

    if (rc == WF_OK)
        return wf_chief_advance(w, now_ns, err);
    why.status = rc;
    if (rc == WF_BROKEN && !w->start) { /* of a stage whose job another worker has */
        *err = why;
        return rc;
    }
    if (rc == WF_PROTO || !w->start)
        WF_LOG_WARN("worker.bad_message", "why=\"%s\"", why.what);
    else
        wf_worker_fault(w, &why);
    return WF_OK;
}

static wf_status take_event(wf_worker *w, wf_event *ev, int64_t now_ns, wf_err *err)
{
    wf_status rc = WF_OK;

    if (is_of_stages(w, ev)) {
        rc = wf_worker_on_stage(w, ev, now_ns, err);
        if (ev->kind == WF_EV_MESSAGE || ev->kind == WF_EV_BEAT)
            wf_net_free_msg(w->net, &ev->msg);
        return rc;
    }
    switch (ev->kind) {
    case WF_EV_UP:
        if (ev->peer == w->session.peer) {
            /* A hold outlives the link, or records would be trained that a checkpoint under way
             * does not name; only the master ends it. What was reported may be lost, and is
             * reported again. Of a chief's checkpoint too much may be lost: the master aborts it.
             */
            wf_chief_abort(w);
            wf_hold_move(w, WF_HOLD_LINK_FRESH);
            w->due_sent = false;
            rc = wf_member_register(w, err);
        } else {
            rc = wf_fellows_on_up(w, ev->peer, err);
            if (rc == WF_OK && w->exchange)
                rc = wf_exchange_on_up(w->exchange, ev->peer, err);
        }
        break;
    case WF_EV_DOWN:
        if (ev->peer == w->session.peer) {
            wf_session_lost(&w->session, now_ns);
            w->want_sent = w->due_sent = false;
        } else {
            if (w->exchange)
                wf_exchange_on_down(w->exchange, ev->peer);
            wf_fellows_on_down(w, ev->peer);
        }
        break;
    case WF_EV_REFUSED:
        *err = ev->err;
        rc = ev->err.status;
        break;
    case WF_EV_MESSAGE:
        rc = on_message(w, ev, now_ns, err);
        wf_net_free_msg(w->net, &ev->msg);
        break;
    case WF_EV_BEAT: /* for the master */
        wf_net_free_msg(w->net, &ev->msg);
        break;
    }
    return rc;
}

wf_status wf_worker_on_event(wf_worker *w, wf_event *ev, int64_t now_ns, wf_err *err)
{
    wf_err why = {0};
    wf_status rc = take_event(w, ev, now_ns, &why);

    if (rc == WF_AGAIN && w->start) { /* this generation cannot go on: the master begins another */
        wf_worker_fault(w, &why);
        return WF_OK;
    }
    if (rc != WF_OK)
        *err = why;
    return rc;
}
