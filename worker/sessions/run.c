/* SPDX-License-Identifier: Apache-2.0 */
/* worker/sessions/run.c - one run: variables are read, fragments computed, changes sent. */
#include "common/base/clock.h"
#include "common/wire/control.h"
#include "common/wire/tensors.h"
#include "common/wire/variables.h"
#include "worker/sessions/state.h"

#include <stdlib.h>
#include <string.h>

/* ---- beginning and end ---- */

static void free_run(wf_session_run *r)
{
    for (uint32_t i = 0; r->values && i < r->plan->n_values; i++)
        wf_tensor_free(&r->values[i]);
    for (size_t i = 0; r->after && i < r->plan->body->n_writes; i++)
        wf_tensor_free(&r->after[i]);
    free(r->values);
    free(r->asked);
    free(r->asked_of);
    free(r->states);
    free(r->sent);
    free(r->after);
    wf_control_free(&r->ask);
    wf_session_plan_leave(&r->plan);
    free(r);
}

static void drop(wf_sessions *s, wf_session_run *r, bool failed)
{
    wf_session_run **at = &s->runs;

    wf_far_give_up(s, r, failed);
    wf_requests_drop_of(&s->requests, r);
    wf_rendezvous_forget(s->rendezvous, r);
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    s->n_runs--;
    free_run(r);
}

void wf_run_drop(wf_sessions *s, wf_session_run *r)
{
    drop(s, r, false);
}

wf_status wf_run_fail(wf_sessions *s, wf_session_run *r, const wf_err *why, wf_err *err)
{
    wf_status rc = wf_sessions_refuse(s, r->client, r->request, false, why, err);

    drop(s, r, true);
    return rc;
}

const wf_peer *wf_run_awaits(const wf_sessions *s, const wf_session_run *r)
{
    for (const wf_request *q = s->requests.first; q; q = q->next)
        if (q->user == r)
            return q->peer;
    return NULL;
}

/* ---- what it sends to ps ---- */

/* About a variable of the plan's container. The request's number goes into *number. */
static wf_status ask_ps(wf_sessions *s, wf_session_run *r, Weft__VariableAsk *body,
                        const wf_tensor *content, uint32_t *number, wf_err *err)
{
    uint32_t home = wf_variable_home(r->plan->body->container, body->name, s->conf.tasks->n_ps);
    Weft__TensorHead head;
    int64_t dims[WF_MAX_RANK];
    wf_peer *ps = NULL;
    wf_msg *m = NULL;
    wf_status rc;

    body->container = r->plan->body->container;
    body->session = r->ask->session;
    body->n_ps = s->conf.tasks->n_ps;
    if (content) {
        wf_tensor_head(content, &head, dims);
        body->tensor = &head;
    }
    WF_TRY(wf_sessions_peer(s, (wf_task){WF_ROLE_PS, home}, &ps, err));
    WF_TRY(wf_net_msg(s->conf.to_ps, WF_VARIABLE, &m, err));
    rc = wf_tensors_put(m, &body->base, content ? 1 : 0, &content, s->conf.checksums, err);
    if (rc == WF_OK)
        rc = wf_requests_send(&s->requests, ps, &m, r, number, err);
    wf_net_free_msg(s->conf.to_ps, &m);
    return rc;
}

static wf_status read_all(wf_sessions *s, wf_session_run *r, wf_err *err)
{
    for (size_t i = 0; i < r->plan->body->n_reads; i++) {
        Weft__VariableAsk ask = WEFT__VARIABLE_ASK__INIT;
        uint32_t at = r->plan->reads[i];

        if (r->asked[at])
            continue; /* it is named twice */
        ask.action = WF_VARIABLE_READ;
        ask.name = r->plan->body->reads[i];
        WF_TRY(ask_ps(s, r, &ask, NULL, &r->asked[at], err));
        r->waiting++;
    }
    return WF_OK;
}

/* Whether a result is the variable after that write. */
static bool is_fetched(const wf_session_run *r, uint32_t write)
{
    for (size_t i = 0; i < r->plan->body->n_results; i++)
        if (r->plan->body->results[i]->write == write + 1)
            return true;
    return false;
}

/* S2 */
static wf_status write_next(wf_sessions *s, wf_session_run *r, wf_err *err)
{
    const Weft__SessionWrite *w = r->plan->body->writes[r->n_written];
    Weft__VariableAsk ask = WEFT__VARIABLE_ASK__INIT;

    ask.action = w->action;
    ask.name = w->variable;
    ask.sequence = r->ask->sequence + r->n_written;
    ask.since = r->ask->sequence;
    ask.wants_value = is_fetched(r, r->n_written) || r->n_written < r->plan->n_early;
    return ask_ps(s, r, &ask, r->values[r->plan->writes[r->n_written]], &r->writing, err);
}

/* ---- the answer ---- */

static wf_status send_results(wf_sessions *s, wf_session_run *r, wf_err *err)
{
    size_t n = r->plan->body->n_results;
    const wf_tensor *tensors[WF_TENSORS_MOST];
    Weft__TensorHead heads[WF_TENSORS_MOST], *list[WF_TENSORS_MOST];
    int64_t dims[WF_TENSORS_MOST][WF_MAX_RANK];
    Weft__RunAnswer body = WEFT__RUN_ANSWER__INIT;
    wf_msg *m = NULL;
    wf_status rc;

    if (n > WF_TENSORS_MOST)
        return wf_fail(err, WF_FULL, "fetch them in several runs", "%zu results; a run gives %d", n,
                       WF_TENSORS_MOST);
    for (size_t i = 0; i < n; i++) {
        uint32_t write = r->plan->body->results[i]->write;

        tensors[i] = write ? r->after[write - 1] : r->values[r->plan->results[i]];
        wf_tensor_head(tensors[i], &heads[i], dims[i]);
        list[i] = &heads[i];
    }
    body.results = list;
    body.n_results = n;
    WF_TRY(wf_net_msg(s->conf.net, WF_RUN_OK, &m, err));
    rc = wf_tensors_put(m, &body.base, (uint32_t)n, tensors, s->conf.checksums, err);
    m->head.request = r->request;
    if (rc == WF_OK) {
        rc = wf_net_send(s->conf.net, r->client, WF_LANE_CONTROL, 0, &m, err);
        rc = rc == WF_NOTFOUND ? WF_OK : rc;
    }
    wf_net_free_msg(s->conf.net, &m);
    return rc;
}

/* ---- its way ---- */

/* What is written or given has to be there: a plan may name what nobody feeds. */
static wf_status check_values(const wf_session_run *r, wf_err *err)
{
    const Weft__SessionPlan *b = r->plan->body;

    for (size_t i = 0; i < b->n_writes; i++)
        if (!r->values[r->plan->writes[i]])
            return wf_fail(err, WF_USAGE, "feed it too", "\"%.200s\" is not fed",
                           b->writes[i]->value);
    for (size_t i = 0; i < b->n_results; i++)
        if (!b->results[i]->write && !r->values[r->plan->results[i]])
            return wf_fail(err, WF_USAGE, "feed it too", "\"%.200s\" is not fed",
                           b->results[i]->value);
    return WF_OK;
}

/* The next write whose result fragments wait for, if what it takes is there. */
static wf_status write_early(wf_sessions *s, wf_session_run *r, wf_err *err)
{
    if (r->writing || r->n_written >= r->plan->n_early || !r->values[r->plan->writes[r->n_written]])
        return WF_OK;
    return write_next(s, r, err);
}

/* As far as it can go without an answer; *done when it has answered. Errors are the client's. */
static wf_status go_on(wf_sessions *s, wf_session_run *r, bool *done, wf_err *err)
{
    bool left = false, waits = false;

    *done = false;
    if (r->waiting) /* S1 */
        return WF_OK;
    WF_TRY(wf_run_fragments(s, r, &left, &waits, err));
    WF_TRY(write_early(s, r, err));
    if (r->writing) /* S2 */
        return WF_OK;
    if (left)
        return waits ? WF_OK : wf_run_is_stuck(r, err);
    WF_TRY(check_values(r, err));
    if (r->n_written < r->plan->body->n_writes)
        return write_next(s, r, err);
    *done = true;
    return send_results(s, r, err);
}

static wf_status settle(wf_sessions *s, wf_session_run *r, wf_status rc, bool done, wf_err *why,
                        wf_err *err)
{
    if (rc != WF_OK && r->n_written > 0) {
        wf_err first = *why;

        wf_fail(why, rc, first.hint, "%s (the first %u of the run's %zu changes are made)",
                first.what, r->n_written, r->plan->body->n_writes);
    }
    if (rc != WF_OK) {
        wf_err_wrap(why, rc, "worker %u", s->conf.index);
        return wf_run_fail(s, r, why, err);
    }
    if (done)
        wf_run_drop(s, r);
    return WF_OK;
}

static wf_status take_feeds(wf_session_run *r, const wf_msg *m, wf_err *err)
{
    for (size_t i = 0; i < r->ask->n_feeds; i++) {
        const Weft__SessionFeed *f = r->ask->feeds[i];
        uint32_t at = wf_session_plan_value(r->plan, f->name);

        if (at == UINT32_MAX)
            continue; /* nothing needs it */
        if (r->values[at] || !f->tensor)
            return wf_fail(err, WF_PROTO, NULL, "input \"%.200s\" is fed twice, or nothing",
                           f->name);
        WF_TRY(wf_tensors_take(m, (uint32_t)i, f->tensor, &r->values[at], err));
    }
    return WF_OK;
}

static wf_status make_room(wf_session_run *r, wf_err *err)
{
    size_t n = r->plan->n_values, fragments = r->plan->body->n_fragments;

    r->values = calloc(n + 1, sizeof(*r->values));
    r->asked = calloc(n + 1, sizeof *r->asked);
    r->asked_of = calloc(n + 1, sizeof *r->asked_of);
    r->states = calloc(fragments + 1, sizeof *r->states);
    r->sent = calloc(fragments + 1, sizeof *r->sent);
    r->after = calloc(r->plan->body->n_writes + 1, sizeof(*r->after));
    return r->values && r->asked && r->asked_of && r->states && r->sent && r->after
               ? WF_OK
               : wf_fail_nomem(err, n * sizeof(*r->values));
}

/* One that is asked for again while it still waits here for another worker begins anew: the Recvs
 * of the two could not be told from each other. */
static void drop_earlier(wf_sessions *s, const Weft__RunAsk *ask)
{
    for (wf_session_run *r = s->runs, *next; r; r = next) {
        next = r->next;
        if (ask->run && r->ask->run == ask->run && r->ask->client == ask->client &&
            r->ask->session == ask->session && r->ask->handle == ask->handle)
            wf_run_drop(s, r);
    }
}

wf_status wf_run_begin(wf_sessions *s, wf_peer *client, const wf_msg *m, Weft__RunAsk **ask,
                       wf_session_plan **plan, int64_t now_ns, wf_err *err)
{
    enum { LONGEST_MS = 60 * 60 * 1000 };
    wf_session_run *r = calloc(1, sizeof *r);
    uint32_t ms = (*ask)->timeout_ms < LONGEST_MS ? (*ask)->timeout_ms : LONGEST_MS;
    bool done = false;
    wf_err why = {0};
    wf_status rc;

    if (!r) {
        wf_session_plan_leave(plan);
        return wf_fail_nomem(err, sizeof *r);
    }
    drop_earlier(s, *ask);
    *r = (wf_session_run){.client = client,
                          .request = m->head.request,
                          .plan = *plan,
                          .ask = *ask,
                          .begun_ns = now_ns,
                          .end_ns = now_ns + ms * WF_NS_PER_MS,
                          .next = s->runs};
    *plan = NULL;
    *ask = NULL;
    s->runs = r;
    s->n_runs++;
    rc = make_room(r, &why);
    if (rc == WF_OK)
        rc = take_feeds(r, m, &why);
    if (rc == WF_OK && !r->ask->run && wf_session_plan_is_far(r->plan))
        rc = wf_fail(&why, WF_PROTO, "upgrade the client",
                     "a run with Sends or Recvs has no number");
    if (rc == WF_OK)
        rc = read_all(s, r, &why);
    if (rc == WF_OK)
        rc = go_on(s, r, &done, &why);
    return settle(s, r, rc, done, &why, err);
}

/* The place of a request's number among n; UINT32_MAX when it is none of them. */
static uint32_t place_of(const uint32_t numbers[], size_t n, uint32_t number)
{
    for (uint32_t i = 0; i < n; i++)
        if (numbers[i] == number)
            return i;
    return UINT32_MAX;
}

static wf_status take_value(const wf_msg *m, const Weft__VariableAnswer *body, wf_tensor **out,
                            wf_err *err)
{
    if (!body->tensor)
        return wf_fail(err, WF_PROTO, "upgrade the ps",
                       "a ps answers without the variable's value");
    return wf_tensors_take(m, 0, body->tensor, out, err);
}

/* The change is made; who needs its result gets it. */
static wf_status take_write(wf_session_run *r, const wf_msg *m, const Weft__VariableAnswer *body,
                            wf_err *err)
{
    uint32_t write = r->n_written;

    r->writing = 0;
    if (is_fetched(r, write))
        WF_TRY(take_value(m, body, &r->after[write], err));
    if (write < r->plan->n_early) {
        wf_tensor_free(&r->values[r->plan->after[write]]);
        WF_TRY(take_value(m, body, &r->values[r->plan->after[write]], err));
    }
    r->n_written++;
    return WF_OK;
}

/* Of a ps. Errors are the client's. */
static wf_status take_answer(wf_session_run *r, const wf_msg *m, const Weft__VariableAnswer *body,
                             wf_err *err)
{
    uint32_t value = place_of(r->asked, r->plan->n_values, m->head.request);

    if (body->status != WF_OK)
        return wf_fail(err, (wf_status)body->status, body->hint, "%s", body->what);
    if (value != UINT32_MAX) {
        r->asked[value] = 0;
        r->waiting--;
        wf_tensor_free(&r->values[value]);
        return take_value(m, body, &r->values[value], err);
    }
    return take_write(r, m, body, err);
}

static wf_status on_ps(wf_session_run *r, const wf_msg *m, wf_err *err)
{
    Weft__VariableAnswer *body = NULL;
    wf_status rc = wf_tensors_body(m, &weft__variable_answer__descriptor, &body, err);

    if (rc == WF_OK)
        rc = take_answer(r, m, body, err);
    wf_control_free(&body);
    return rc;
}

wf_status wf_run_go_on(wf_sessions *s, wf_session_run *r, wf_err *err)
{
    bool done = false;
    wf_err why = {0};
    wf_status rc = go_on(s, r, &done, &why);

    return settle(s, r, rc, done, &why, err);
}

/* Errors are the client's. */
static wf_status on_worker(wf_sessions *s, wf_session_run *r, const wf_msg *m, wf_err *err)
{
    uint32_t number = m->head.request;
    uint32_t value = place_of(r->asked, r->plan->n_values, number);
    uint32_t at = place_of(r->sent, r->plan->body->n_fragments, number);

    if (m->head.kind == WF_TAKE_OK && value != UINT32_MAX)
        return wf_far_on_taken(r, value, m, err);
    if (m->head.kind != WF_TAKE_OK && at != UINT32_MAX)
        return wf_run_on_fragment(s, r, at, m, err);
    return wf_fail(err, WF_PROTO, "upgrade it", "a worker answers with %s",
                   wf_kind_name(m->head.kind));
}

wf_status wf_run_on_answer(wf_sessions *s, wf_session_run *r, const wf_msg *m, wf_err *err)
{
    wf_err why = {0};
    wf_status rc = m->head.kind == WF_VARIABLE_OK ? on_ps(r, m, &why) : on_worker(s, r, m, &why);

    return rc == WF_OK ? wf_run_go_on(s, r, err) : settle(s, r, rc, false, &why, err);
}
