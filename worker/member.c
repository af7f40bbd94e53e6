/* SPDX-License-Identifier: Apache-2.0 */
/* worker/member.c - a worker's session with the master: what it holds is said after each fresh
 * link; a start of a newer generation replaces all that it has. */
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "worker/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PS = 65536 };

wf_status wf_member_register(wf_worker *w, wf_err *err)
{
    Weft__Register body = WEFT__REGISTER__INIT;
    Weft__Split open[WF_WORKER_SPLITS], *open_list[WF_WORKER_SPLITS];
    Weft__Split *rows = calloc(WF_WORKER_FINISHED, sizeof *rows);
    Weft__Split **list = calloc(WF_WORKER_FINISHED, sizeof(*list));
    wf_status rc;

    if (rows && list) {
        body.job = w->start ? w->start->job : "";
        body.job_id = w->start ? w->start->job_id : 0;
        body.cut = w->hold != WF_HOLD_FREE ? w->cut : 0;
        body.generation = w->generation;
        body.ready = w->start != NULL;
        body.view = w->view;
        body.open = open_list;
        body.n_open = wf_splits_open(w, open, open_list);
        body.finished = list;
        body.n_finished = wf_splits_finished(w, rows, list);
        body.steps = w->exchange ? w->exchange->acked : 0;
        body.train_records = w->job.train_records;
        body.train_digest = w->job.train_digest;
        body.files = w->job.files;
        body.n_files = w->job.n_files;
        body.eval_records = w->job.eval_records;
        body.round = w->round;
        body.fellows = (char *)(w->conf.fellows ? w->conf.fellows : "");
        w->want_sent = false;
        rc = wf_session_register(&w->session, &body, err);
    } else {
        rc = wf_fail_nomem(err, WF_WORKER_FINISHED * sizeof *rows);
    }
    free(rows);
    free(list);
    return rc;
}

void wf_member_halt(wf_worker *w)
{
    wf_chief_abort(w);
    if (w->start)
        w->conf.ops.halt(w->conf.ops.arg);
    wf_exchange_free(&w->exchange);
    wf_control_free(&w->start);
    wf_control_free(&w->next_round);
    w->round = 0;
    memset(w->splits, 0, sizeof w->splits);
    memset(w->places, 0, sizeof w->places);
    w->n_finished = 0;
    w->step = w->begun = 0;
    wf_worker_move(w, WF_WORKER_HALTED);
    wf_session_forget_fault(&w->session);
    wf_hold_move(w, WF_HOLD_HALTED);
    w->any_step = w->want_sent = w->due_sent = w->eval_wanted = false;
    w->eval_set_of = 0;
    wf_measures_close(w->metrics, w->n_metrics);
    w->n_metrics = 0;
    w->samples = w->dropped = w->compute_ns = w->wait_ns = w->transfer_ns = w->data_ns = 0;
}

/* Dials the ps of the view, but for those that are dialled already at the same address. */
static wf_status dial_all(wf_worker *w, const Weft__View *view, wf_err *err)
{
    for (size_t i = 0; i < view->n_members; i++) {
        const Weft__Member *m = view->members[i];
        wf_task task = {WF_ROLE_PS, m->index};
        wf_transport *t = NULL;

        if (m->role != WF_ROLE_PS || m->index >= w->n_ps)
            continue;
        if (w->ps[m->index] && strcmp(w->ps_address[m->index], m->address) == 0)
            continue;
        wf_net_hang_up(w->net, &w->ps[m->index]);
        WF_TRY(w->conf.ops.dial(w->conf.ops.arg, task, m->address, &t, err));
        WF_TRY(wf_net_dial(w->net, task, m->address, &t, &w->ps[m->index], err));
        snprintf(w->ps_address[m->index], sizeof w->ps_address[0], "%s", m->address);
    }
    return WF_OK;
}

static wf_status room_for_ps(wf_worker *w, const Weft__View *view, wf_err *err)
{
    uint32_t n = 0;
    wf_peer **ps;
    void *address;

    for (size_t i = 0; i < view->n_members; i++) {
        uint32_t index = view->members[i]->index;

        if (view->members[i]->role != WF_ROLE_PS)
            continue;
        if (index >= MOST_PS)
            return wf_fail(err, WF_PROTO, NULL, "a view with ps %u", index);
        n = WF_MAX(n, index + 1);
    }
    if (n <= w->n_ps)
        return WF_OK;
    ps = realloc(w->ps, n * sizeof(*ps));
    if (!ps)
        return wf_fail_nomem(err, n * sizeof(*ps));
    w->ps = ps;
    address = realloc(w->ps_address, n * sizeof w->ps_address[0]);
    if (!address)
        return wf_fail_nomem(err, n * sizeof w->ps_address[0]);
    w->ps_address = address;
    for (; w->n_ps < n; w->n_ps++) {
        w->ps[w->n_ps] = NULL;
        w->ps_address[w->n_ps][0] = 0;
    }
    return WF_OK;
}

static wf_status open_exchange(wf_worker *w, wf_err *err)
{
    return wf_exchange_open(&(wf_exchange_conf){.start = w->start,
                                                .net = w->net,
                                                .ps = w->ps,
                                                .n_ps = w->n_ps,
                                                .job = w->job_number,
                                                .generation = w->generation,
                                                .map = w->map,
                                                .view = w->view,
                                                .pipeline = w->job.pipeline,
                                                .checksums = w->job.checksums,
                                                .incarnation = w->conf.incarnation,
                                                .disk = w->conf.disk,
                                                .pool = w->conf.pool,
                                                .place = w->job.place,
                                                .file_bytes = w->conf.file_bytes},
                            &w->exchange, err);
}

static wf_status begin(wf_worker *w, wf_err *err)
{
    const Weft__View *view = w->start->view;

    if (!view)
        return wf_fail(err, WF_PROTO, NULL, "a start without a view");
    WF_TRY(room_for_ps(w, view, err));
    WF_TRY(dial_all(w, view, err));
    WF_TRY(wf_fellows_dial(w, view, err));
    WF_TRY(w->conf.ops.start(w->conf.ops.arg, w->start, &w->job, err));
    if (w->job.batch == 0 || w->job.pipeline > WF_MAX_PIPELINE)
        return wf_fail(err, WF_INVALID, NULL, "batch %lu and pipeline %u cannot be",
                       (unsigned long)w->job.batch, w->job.pipeline);
    WF_TRY(open_exchange(w, err));
    for (uint32_t i = 0; i < w->n_ps; i++)
        if (w->ps[i] && w->ps[i]->up)
            WF_TRY(wf_exchange_on_up(w->exchange, w->ps[i], err));
    WF_TRY(wf_fellows_tell(w, err));
    w->round = w->start->round ? w->start->round->round : 0;
    return WF_OK;
}

wf_status wf_member_on_view(wf_worker *w, const wf_msg *m, wf_err *err)
{
    Weft__View *body = NULL;
    wf_status rc;

    WF_TRY(wf_control_get(m, &weft__view__descriptor, &body, err));
    rc = wf_fellows_dial(w, body, err);
    if (rc == WF_OK)
        rc = wf_exchange_on_view(w->exchange, body, body->number, err);
    if (rc == WF_OK)
        rc = wf_fellows_tell(w, err);
    wf_control_free(&body);
    return rc;
}

wf_status wf_member_start(wf_worker *w, const wf_msg *m, wf_err *err)
{
    Weft__Outcome outcome = WEFT__OUTCOME__INIT;
    Weft__Start *body = NULL;
    wf_err why = {0};
    wf_status rc;

    /* Generations of two jobs have nothing to do with each other. */
    WF_TRY(wf_control_get(m, &weft__start__descriptor, &body, err));
    if (w->start && body->job_id == w->start->job_id && m->head.generation <= w->generation) {
        wf_control_free(&body);
        return WF_OK;
    }
    wf_member_halt(w);
    w->start = body;
    w->job_number = m->head.job;
    w->generation = m->head.generation;
    w->map = m->head.map;
    w->view = m->head.view;
    rc = begin(w, &why);
    WF_LOG_INFO("worker.started", "job=%s generation=%u start_bytes=%zu status=%d", body->job,
                w->generation, (size_t)m->head.control_bytes, (int)rc);
    outcome.status = rc;
    outcome.what = why.what;
    outcome.hint = why.hint;
    outcome.train_records = w->job.train_records;
    outcome.train_digest = w->job.train_digest;
    outcome.files = w->job.files;
    outcome.n_files = w->job.n_files;
    outcome.eval_records = w->job.eval_records;
    outcome.round = w->round;
    rc = wf_session_send(&w->session, WF_START_OK, &outcome.base, err);
    if (outcome.status != WF_OK)
        wf_member_halt(w);
    return rc;
}
