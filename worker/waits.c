/* SPDX-License-Identifier: Apache-2.0 */
/* worker/waits.c - what a worker waits for: found from its state after each turn, put into words
 * only when somebody asks. */
#include "common/base/clock.h"
#include "worker/state.h"

#include <stdio.h>

/* A worker that did not look for so long was in a call, or stopped. What has come meanwhile it has
 * not taken, so that no wait is older than its first look afterwards. */
static const int64_t AWAY_NS = WF_NS_PER_S / 2;

static struct wf_worker_wait look(wf_worker *w)
{
    uint32_t in_flight;

    if (!w->start)
        return (struct wf_worker_wait){.kind = WF_WAIT_JOB};
    if (w->state != WF_WORKER_WAITING)
        return (struct wf_worker_wait){.kind = WF_WAIT_NONE};
    in_flight = wf_exchange_in_flight(w->exchange);
    if (w->hold == WF_HOLD_REPORTED && w->chief.state == WF_CHIEF_SAVING && !w->chief.copied_ns)
        return (struct wf_worker_wait){WF_WAIT_COPIES, w->cut, 0};
    if (w->hold == WF_HOLD_REPORTED)
        return (struct wf_worker_wait){WF_WAIT_RESUME, w->cut, 0};
    if (in_flight > 0 && (w->hold != WF_HOLD_FREE || w->eval_wanted ||
                          in_flight > w->job.pipeline + w->exchange->late))
        return (struct wf_worker_wait){WF_WAIT_ACKS, w->exchange->acked + 1, 0};
    if (wf_exchange_frozen_left(w->exchange) > 0) /* each that comes begins the wait anew */
        return (struct wf_worker_wait){WF_WAIT_FROZEN, wf_exchange_frozen_left(w->exchange), 0};
    if (w->eval_wanted)
        return (struct wf_worker_wait){WF_WAIT_WEIGHTS, w->step + 1, 0};
    if (!wf_splits_current(w))
        return (struct wf_worker_wait){WF_WAIT_SPLIT, w->step, 0};
    if (w->due_sent)
        return (struct wf_worker_wait){WF_WAIT_RESUME, w->cut, 0};
    return (struct wf_worker_wait){WF_WAIT_WEIGHTS, w->step + 1, 0};
}

void wf_waits_look(wf_worker *w, int64_t now_ns)
{
    struct wf_worker_wait now = look(w);
    bool away = now_ns - w->looked_ns > AWAY_NS;

    w->looked_ns = now_ns;
    if (now.kind == w->wait.kind && now.of == w->wait.of && !away)
        return;
    now.since_ns = now_ns;
    w->wait = now;
}

static void name_late(const wf_worker *w, wf_waiting *out)
{
    if (w->wait.kind == WF_WAIT_ACKS)
        wf_exchange_name_late(w->exchange, WF_EXCHANGE_ACKS, w->wait.of, out);
    else if (w->wait.kind == WF_WAIT_FROZEN)
        wf_exchange_name_late(w->exchange, WF_EXCHANGE_FROZEN, 0, out);
    else
        wf_exchange_name_late(w->exchange, WF_EXCHANGE_WEIGHTS,
                              w->eval_wanted ? WF_EVAL_SET : w->wait.of % WF_STEP_SETS, out);
}

/* Who has not taken its copies for the cut that this worker writes. */
static void name_copier(const wf_exchange_save *s, wf_waiting *out)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (!s->shards[i].copied) {
            out->whom = s->shards[i].writer;
            return;
        }
}

void wf_worker_waiting(const wf_worker *w, wf_waiting *out)
{
    *out = (wf_waiting){.whom = {WF_ROLE_MASTER, 0}, .since_ns = w->wait.since_ns};
    switch (w->wait.kind) {
    case WF_WAIT_NONE:
        out->whom.role = WF_ROLE_NONE;
        break;
    case WF_WAIT_JOB:
        wf_session_waiting(&w->session, out); /* idle is no wait */
        break;
    case WF_WAIT_SPLIT:
        snprintf(out->what, sizeof out->what, "records to train");
        break;
    case WF_WAIT_WEIGHTS:
        snprintf(out->what, sizeof out->what, "weights of step %u", w->wait.of);
        name_late(w, out);
        break;
    case WF_WAIT_FROZEN:
        snprintf(out->what, sizeof out->what, "%u slices of frozen weights", w->wait.of);
        name_late(w, out);
        break;
    case WF_WAIT_ACKS:
        snprintf(out->what, sizeof out->what, "the acknowledgement of step %u", w->wait.of);
        name_late(w, out);
        break;
    case WF_WAIT_COPIES:
        snprintf(out->what, sizeof out->what, "its part of checkpoint cut %u", w->wait.of);
        name_copier(&w->exchange->saving, out);
        break;
    case WF_WAIT_RESUME:
        snprintf(out->what, sizeof out->what, "the end of checkpoint cut %u", w->wait.of);
        break;
    }
}
