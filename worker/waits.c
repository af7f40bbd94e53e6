/* SPDX-License-Identifier: Apache-2.0 */
/* worker/waits.c - what a worker waits for: found from its state after each turn, put into words
 * only when somebody asks. */
#include "worker/state.h"

#include <stdio.h>
#include <string.h>

static struct wf_worker_wait look(wf_worker *w)
{
    uint32_t in_flight;

    if (!w->start)
        return (struct wf_worker_wait){.kind = WF_WAIT_JOB};
    if (w->computing || w->evaluating || w->faulted)
        return (struct wf_worker_wait){.kind = WF_WAIT_NONE};
    in_flight = wf_client_in_flight(w->client);
    if (w->held && w->reported)
        return (struct wf_worker_wait){WF_WAIT_RESUME, w->cut, 0};
    if (in_flight > 0 && (w->held || w->eval_wanted || in_flight > w->job.pipeline))
        return (struct wf_worker_wait){WF_WAIT_ACKS, wf_client_acked(w->client) + 1, 0};
    if (wf_client_frozen_left(w->client) > 0) /* each that comes begins the wait anew */
        return (struct wf_worker_wait){WF_WAIT_FROZEN, wf_client_frozen_left(w->client), 0};
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

    if (now.kind == w->wait.kind && now.of == w->wait.of)
        return;
    now.since_ns = now_ns;
    w->wait = now;
}

/* The first ps that has not done its part. */
static uint32_t late_ps(const wf_worker *w)
{
    if (w->wait.kind == WF_WAIT_ACKS)
        return wf_client_late_acks(w->client, w->wait.of);
    if (w->wait.kind == WF_WAIT_FROZEN)
        return wf_client_late_frozen(w->client);
    return wf_client_late_weights(w->client, w->eval_wanted ? WF_EVAL_SET : (int)(w->wait.of % 2));
}

/* Adds that ps, and why it may be late. */
static void name_ps(const wf_worker *w, wf_waiting *out)
{
    uint32_t ps = late_ps(w);
    const wf_peer *peer = ps < w->n_ps ? w->ps[ps] : NULL;
    size_t n = strlen(out->what), room = sizeof out->what - n;
    char *rest = out->what + n;

    out->whom = (wf_task){WF_ROLE_PS, ps < w->n_ps ? ps : 0};
    if (peer && !peer->up)
        snprintf(rest, room, " (no link to %.60s%s%.80s)", peer->address,
                 peer->delay[0] ? ": " : "", peer->delay);
    else if (peer && !wf_client_let_in(w->client, ps))
        snprintf(rest, room, " (it does not let this worker in)");
}

void wf_worker_waiting(const wf_worker *w, wf_waiting *out)
{
    *out = (wf_waiting){.whom = {WF_ROLE_MASTER, 0}, .since_ns = w->wait.since_ns};
    switch (w->wait.kind) {
    case WF_WAIT_NONE:
        out->whom.role = WF_ROLE_NONE;
        break;
    case WF_WAIT_JOB:
        out->whom.role = w->master->up ? WF_ROLE_NONE : WF_ROLE_MASTER; /* idle is no wait */
        snprintf(out->what, sizeof out->what, "a link to %.80s", w->master->address);
        break;
    case WF_WAIT_SPLIT:
        snprintf(out->what, sizeof out->what, "records to train");
        break;
    case WF_WAIT_WEIGHTS:
        snprintf(out->what, sizeof out->what, "weights of step %u", w->wait.of);
        name_ps(w, out);
        break;
    case WF_WAIT_FROZEN:
        snprintf(out->what, sizeof out->what, "%u slices of frozen weights", w->wait.of);
        name_ps(w, out);
        break;
    case WF_WAIT_ACKS:
        snprintf(out->what, sizeof out->what, "the acknowledgement of step %u", w->wait.of);
        name_ps(w, out);
        break;
    case WF_WAIT_RESUME:
        snprintf(out->what, sizeof out->what, "the end of checkpoint cut %u", w->wait.of);
        break;
    }
}
