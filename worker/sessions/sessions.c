/* SPDX-License-Identifier: Apache-2.0 */
/* worker/sessions/sessions.c - clients, ps, and what they say. */
#include "worker/sessions/sessions.h"
#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/wire/control.h"
#include "common/wire/tensors.h"
#include "worker/sessions/state.h"

#include <stdlib.h>

enum { MOST_CLIENTS = 256, OWED_MOST = 2 * WF_TENSORS_BYTES };

wf_status wf_sessions_new(const wf_sessions_conf *conf, wf_sessions **out, wf_err *err)
{
    wf_sessions *s = calloc(1, sizeof *s);
    wf_status rc;

    *out = s;
    if (!s)
        return wf_fail_nomem(err, sizeof *s);
    s->conf = *conf;
    s->requests.net = conf->to_ps;
    s->id = wf_random_id();
    s->ps = calloc(conf->tasks->n_ps + 1, sizeof(*s->ps));
    s->workers = calloc(conf->tasks->n_workers + 1, sizeof(*s->workers));
    rc = s->ps && s->workers ? wf_rendezvous_new(&conf->sent, &s->rendezvous, err)
                             : wf_fail_nomem(err, conf->tasks->n_ps * sizeof(*s->ps));
    if (rc != WF_OK)
        wf_sessions_free(out);
    return rc;
}

void wf_sessions_free(wf_sessions **s)
{
    if (!*s)
        return;
    while ((*s)->runs)
        wf_run_drop(*s, (*s)->runs);
    wf_requests_close(&(*s)->requests);
    wf_session_plans_close(&(*s)->plans);
    wf_rendezvous_free(&(*s)->rendezvous);
    wf_pool_free(&(*s)->pool);
    free((*s)->ps);
    free((*s)->workers);
    free(*s);
    *s = NULL;
}

wf_status wf_sessions_admit(void *sessions, const wf_hello *hello, wf_err *err)
{
    const wf_sessions *s = sessions;
    char text[32];

    if (hello->task.role != WF_ROLE_CLIENT)
        return wf_fail(err, WF_MISMATCH, "check the addresses in cluster.yaml",
                       "worker %u is dialled by clients alone, and not by %s", s->conf.index,
                       wf_task_str(hello->task, text, sizeof text));
    if (wf_net_accepted_of(s->conf.net, WF_ROLE_CLIENT) < MOST_CLIENTS)
        return WF_OK;
    return wf_fail(err, WF_AGAIN, NULL, "%d clients are connected to worker %u", MOST_CLIENTS,
                   s->conf.index);
}

static wf_peer **place_of(const wf_sessions *s, wf_task task)
{
    return task.role == WF_ROLE_PS ? &s->ps[task.index] : &s->workers[task.index];
}

wf_status wf_sessions_peer(wf_sessions *s, wf_task task, wf_peer **out, wf_err *err)
{
    wf_peer **at = place_of(s, task);
    wf_transport *t = NULL;

    if (!*at) {
        const char *address = task.role == WF_ROLE_PS ? s->conf.tasks->ps[task.index]
                                                      : s->conf.tasks->workers[task.index];

        WF_TRY(s->conf.dial(s->conf.dial_arg, task, address, &t, err));
        WF_TRY(wf_net_dial(s->conf.to_ps, task, address, &t, at, err));
    }
    *out = *at;
    return WF_OK;
}

/* ---- clients ---- */

/* Takes *m. A client that is gone asks again. */
static wf_status send(wf_sessions *s, wf_peer *to, uint32_t request, wf_msg **m, wf_err *err)
{
    wf_status rc;

    (*m)->head.request = request;
    rc = wf_net_send(s->conf.net, to, WF_LANE_CONTROL, 0, m, err);
    return rc == WF_NOTFOUND ? WF_OK : rc;
}

wf_status wf_sessions_refuse(wf_sessions *s, wf_peer *to, uint32_t request, bool unknown,
                             const wf_err *why, wf_err *err)
{
    Weft__RunAnswer body = WEFT__RUN_ANSWER__INIT;
    wf_msg *m = NULL;
    wf_status rc;

    body.status = why->status;
    body.what = (char *)why->what;
    body.hint = (char *)why->hint;
    body.unknown_plan = unknown;
    WF_TRY(wf_net_msg(s->conf.net, WF_RUN_OK, &m, err));
    rc = wf_tensors_put(m, &body.base, 0, NULL, s->conf.checksums, err);
    if (rc == WF_OK)
        rc = send(s, to, request, &m, err);
    wf_net_free_msg(s->conf.net, &m);
    return rc;
}

static wf_status take_plan(wf_sessions *s, const wf_peer *from, const wf_msg *m, wf_err *err)
{
    Weft__SessionPlan *body = NULL;
    wf_status rc = wf_control_get(m, &weft__session_plan__descriptor, &body, err);

    if (rc == WF_OK && s->conf.tasks->n_ps == 0)
        rc = wf_fail(err, WF_UNSUPPORTED, "name a ps in cluster.yaml",
                     "the cluster has no ps, where variables of sessions live");
    if (rc == WF_OK && !s->pool)
        rc = wf_pool_new(WF_MAX(s->conf.threads, 1u), &s->pool, err);
    if (rc == WF_OK)
        rc = wf_session_plans_put(&s->plans, &body,
                                  &(wf_session_place){.worker = s->conf.index,
                                                      .n_workers = s->conf.tasks->n_workers,
                                                      .pool = s->pool,
                                                      .from = from},
                                  err);
    wf_control_free(&body);
    return wf_err_wrap(err, rc, "worker %u", s->conf.index);
}

static wf_status on_plan(wf_sessions *s, wf_peer *from, const wf_msg *m, wf_err *err)
{
    Weft__Outcome body = WEFT__OUTCOME__INIT;
    wf_msg *answer = NULL;
    wf_err why = {0};
    wf_status rc;

    body.status = take_plan(s, from, m, &why);
    body.what = why.what;
    body.hint = why.hint;
    WF_TRY(wf_net_msg(s->conf.net, WF_PLAN_OK, &answer, err));
    rc = wf_control_put(answer, &body.base, err);
    if (rc == WF_OK)
        rc = send(s, from, m->head.request, &answer, err);
    wf_net_free_msg(s->conf.net, &answer);
    return rc;
}

static wf_status check_room(const wf_sessions *s, const wf_peer *from, wf_err *err)
{
    if (s->n_runs >= WF_SESSION_RUNS)
        return wf_fail(err, WF_AGAIN, "try again later", "worker %u has %u runs in hand",
                       s->conf.index, s->n_runs);
    if (wf_net_owed_bytes(from) > OWED_MOST)
        return wf_fail(err, WF_AGAIN, "take the answers first",
                       "%zu MiB of answers wait for this client", wf_net_owed_bytes(from) >> 20);
    return WF_OK;
}

static wf_status on_run(wf_sessions *s, wf_peer *from, const wf_msg *m, int64_t now_ns, wf_err *err)
{
    wf_session_plan *plan = NULL;
    Weft__RunAsk *ask = NULL;
    bool unknown = false;
    wf_err why = {0};
    wf_status rc = wf_tensors_body(m, &weft__run_ask__descriptor, &ask, &why);

    if (rc == WF_OK)
        rc = check_room(s, from, &why);
    if (rc == WF_OK) {
        plan = wf_session_plans_take(&s->plans, ask->session, ask->handle);
        unknown = !plan;
        if (unknown)
            rc = wf_fail(&why, WF_NOTFOUND, NULL, "worker %u has no plan %u of this session",
                         s->conf.index, ask->handle);
    }
    if (rc != WF_OK)
        rc = wf_sessions_refuse(s, from, m->head.request, unknown, &why, err);
    else
        rc = wf_run_begin(s, from, m, &ask, &plan, now_ns, err);
    wf_control_free(&ask);
    return rc;
}

static wf_status on_message(wf_sessions *s, wf_peer *from, const wf_msg *m, int64_t now_ns,
                            wf_err *err)
{
    switch (m->head.kind) {
    case WF_TASKS_ASK:
        return wf_tasks_answer(s->conf.net, from, m, s->conf.tasks, err);
    case WF_PLAN:
        return on_plan(s, from, m, err);
    case WF_RUN:
        return on_run(s, from, m, now_ns, err);
    case WF_TAKE:
        return wf_far_on_take(s, from, m, err);
    default:
        return WF_OK;
    }
}

static void drop_runs_of(wf_sessions *s, const wf_peer *client)
{
    for (wf_session_run *r = s->runs, *next; r; r = next) {
        next = r->next;
        if (r->client == client)
            wf_run_drop(s, r);
    }
}

wf_status wf_sessions_on_client(wf_sessions *s, wf_event *ev, int64_t now_ns, wf_err *err)
{
    wf_status rc = WF_OK;

    s->now_ns = now_ns;
    if (ev->kind == WF_EV_DOWN) {
        drop_runs_of(s, ev->peer);
        /* A worker goes by what it has sent, and is not told. */
        if (ev->peer->task.role == WF_ROLE_CLIENT)
            wf_session_plans_drop(&s->plans, ev->peer);
        wf_rendezvous_forget(s->rendezvous, ev->peer);
    }
    if (ev->kind != WF_EV_MESSAGE && ev->kind != WF_EV_BEAT)
        return WF_OK;
    if (ev->kind == WF_EV_MESSAGE)
        rc = on_message(s, ev->peer, ev->msg, now_ns, err);
    wf_net_free_msg(s->conf.net, &ev->msg);
    return rc == WF_OK ? wf_far_deliver(s, err) : rc;
}

/* ---- ps, and other workers ---- */

static wf_session_run *find_waiting(const wf_sessions *s, const wf_peer *peer)
{
    for (const wf_request *q = s->requests.first; q; q = q->next)
        if (q->peer == peer)
            return q->user;
    return NULL;
}

/* It is dialled anew by the next run. */
static wf_status on_refused(wf_sessions *s, const wf_peer *peer, const wf_err *why, wf_err *err)
{
    wf_peer **at = place_of(s, peer->task);
    wf_session_run *r;

    while ((r = find_waiting(s, peer)))
        WF_TRY(wf_run_fail(s, r, why, err));
    wf_net_hang_up(s->conf.to_ps, at);
    return WF_OK;
}

wf_status wf_sessions_on_ps(wf_sessions *s, wf_event *ev, int64_t now_ns, wf_err *err)
{
    wf_status rc = WF_OK;
    void *user = NULL;

    s->now_ns = now_ns;
    switch (ev->kind) {
    case WF_EV_UP:
        WF_TRY(wf_far_on_up(s, ev->peer, err));
        return wf_requests_on_up(&s->requests, ev->peer, err);
    case WF_EV_REFUSED:
        return on_refused(s, ev->peer, &ev->err, err);
    case WF_EV_MESSAGE:
        if (wf_requests_answered(&s->requests, ev->peer, ev->msg->head.request, &user))
            rc = wf_run_on_answer(s, user, ev->msg, err);
        wf_net_free_msg(s->conf.to_ps, &ev->msg);
        return rc == WF_OK ? wf_far_deliver(s, err) : rc;
    default:
        return WF_OK;
    }
}

/* ---- time ---- */

static wf_status end_late(wf_sessions *s, wf_session_run *r, wf_err *err)
{
    const wf_peer *p = wf_run_awaits(s, r);
    wf_err why = {0};
    char text[32];

    if (wf_far_is_late(s, r, &why))
        return wf_run_fail(s, r, &why, err);
    wf_fail(&why, WF_TIMEOUT,
            r->n_written || r->writing ? "some of its changes may be made; see: weft status"
                                       : "is it up? see it with: weft status",
            "worker %u: no answer from %s at %s in %lld ms", s->conf.index,
            p ? wf_task_str(p->task, text, sizeof text) : "itself", p ? p->address : "?",
            (long long)((r->end_ns - r->begun_ns) / WF_NS_PER_MS));
    return wf_run_fail(s, r, &why, err);
}

wf_status wf_sessions_advance(wf_sessions *s, int64_t now_ns, wf_err *err)
{
    for (wf_session_run *r = s->runs, *next; r; r = next) {
        next = r->next;
        if (now_ns >= r->end_ns)
            WF_TRY(end_late(s, r, err));
    }
    wf_rendezvous_advance(s->rendezvous, now_ns);
    return WF_OK;
}

int64_t wf_sessions_deadline(const wf_sessions *s)
{
    int64_t soonest_ns = wf_rendezvous_deadline(s->rendezvous);

    for (const wf_session_run *r = s->runs; r; r = r->next)
        soonest_ns = WF_MIN(soonest_ns, r->end_ns);
    return soonest_ns;
}
