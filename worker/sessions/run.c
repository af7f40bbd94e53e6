/* SPDX-License-Identifier: Apache-2.0 */
/* worker/sessions/run.c - one run: variables are read, the plan is run, changes are sent. */
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
    uint32_t n_in = wf_plan_n_inputs(r->plan->plan), n_out = wf_plan_n_outputs(r->plan->plan);

    for (uint32_t i = 0; r->inputs && i < n_in; i++)
        wf_tensor_free(&r->inputs[i]);
    for (uint32_t i = 0; r->outputs && i < n_out; i++)
        wf_tensor_free(&r->outputs[i]);
    for (size_t i = 0; r->after && i < r->plan->body->n_writes; i++)
        wf_tensor_free(&r->after[i]);
    free(r->inputs);
    free(r->asked);
    free(r->outputs);
    free(r->after);
    wf_control_free(&r->ask);
    wf_session_plan_leave(&r->plan);
    free(r);
}

void wf_run_drop(wf_sessions *s, wf_session_run *r)
{
    wf_session_run **at = &s->runs;

    wf_requests_drop_of(&s->requests, r);
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    s->n_runs--;
    free_run(r);
}

wf_status wf_run_fail(wf_sessions *s, wf_session_run *r, const wf_err *why, wf_err *err)
{
    wf_status rc = wf_sessions_refuse(s, r->client, r->request, false, why, err);

    wf_run_drop(s, r);
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
    if (content) {
        wf_tensor_head(content, &head, dims);
        body->tensor = &head;
    }
    WF_TRY(wf_sessions_ps(s, home, &ps, err));
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
    ask.wants_value = is_fetched(r, r->n_written);
    return ask_ps(s, r, &ask, r->outputs[r->plan->writes[r->n_written]], &r->writing, err);
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

        tensors[i] = write ? r->after[write - 1] : r->outputs[r->plan->results[i]];
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

/* ---- computing ---- */

static wf_status bind(wf_session_run *r, wf_err *err)
{
    wf_plan *p = r->plan->plan;

    for (uint32_t i = 0; i < wf_plan_n_inputs(p); i++) {
        const wf_port *port = wf_plan_input(p, i);
        const wf_tensor *t = r->inputs[i];
        char has[128], wants[128];

        if (port->variable) /* of the graph, with its own content */
            continue;
        if (!t)
            return wf_fail(err, WF_USAGE, "feed it too", "input \"%.200s\" is not fed", port->name);
        if (t->dtype != port->dtype || t->rank != port->rank ||
            memcmp(t->dims, port->dims, t->rank * sizeof t->dims[0]) != 0)
            return wf_fail(err, WF_SHAPE, "extend a session by the model with its shape as it is",
                           "\"%.200s\" is %s %s, and the graph takes %s %s", port->name,
                           wf_dtype_name(t->dtype), wf_dims_str(t->rank, t->dims, has, sizeof has),
                           wf_dtype_name(port->dtype),
                           wf_dims_str(port->rank, port->dims, wants, sizeof wants));
        wf_plan_bind_input(p, i, t->data);
    }
    return WF_OK;
}

/* The plan may be another run's next. */
static wf_status keep_outputs(wf_session_run *r, wf_err *err)
{
    const wf_plan *p = r->plan->plan;

    for (uint32_t i = 0; i < wf_plan_n_outputs(p); i++) {
        const wf_port *port = wf_plan_output(p, i);

        WF_TRY(wf_tensor_new(port->dtype, port->rank, port->dims, &r->outputs[i], err));
        if (port->bytes)
            memcpy(r->outputs[i]->data, wf_plan_output_data(p, i), port->bytes);
    }
    return WF_OK;
}

static wf_status compute(wf_session_run *r, wf_err *err)
{
    wf_step_key key = {.seed = r->ask->seed};

    WF_TRY(bind(r, err));
    WF_TRY(wf_plan_run(r->plan->plan, &key, NULL, NULL, err));
    return keep_outputs(r, err);
}

/* ---- its way ---- */

/* As far as it can go without an answer; *done when it has answered. Errors are the client's. */
static wf_status go_on(wf_sessions *s, wf_session_run *r, bool *done, wf_err *err)
{
    *done = false;
    if (r->waiting)
        return WF_OK;
    wf_assert(!r->writing); /* S2 */
    if (!r->n_written && !r->outputs[0])
        WF_TRY(compute(r, err));
    if (r->n_written < r->plan->body->n_writes)
        return write_next(s, r, err);
    *done = true;
    return send_results(s, r, err);
}

static wf_status settle(wf_sessions *s, wf_session_run *r, wf_status rc, bool done, wf_err *why,
                        wf_err *err)
{
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
        int64_t at = wf_plan_find_input(r->plan->plan, f->name);

        if (at < 0)
            continue; /* nothing needs it */
        if (r->inputs[at] || !f->tensor)
            return wf_fail(err, WF_PROTO, NULL, "input \"%.200s\" is fed twice, or nothing",
                           f->name);
        WF_TRY(wf_tensors_take(m, (uint32_t)i, f->tensor, &r->inputs[at], err));
    }
    return WF_OK;
}

static wf_status make_room(wf_session_run *r, wf_err *err)
{
    uint32_t n_in = wf_plan_n_inputs(r->plan->plan), n_out = wf_plan_n_outputs(r->plan->plan);

    r->inputs = calloc(n_in + 1, sizeof(*r->inputs));
    r->asked = calloc(n_in + 1, sizeof *r->asked);
    r->outputs = calloc(n_out + 1, sizeof(*r->outputs));
    r->after = calloc(r->plan->body->n_writes + 1, sizeof(*r->after));
    return r->inputs && r->asked && r->outputs && r->after ? WF_OK
                                                           : wf_fail_nomem(err, n_in * sizeof(*r));
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
    if (rc == WF_OK)
        rc = read_all(s, r, &why);
    if (rc == WF_OK)
        rc = go_on(s, r, &done, &why);
    return settle(s, r, rc, done, &why, err);
}

/* The port that an answer is for; UINT32_MAX when it is a write's. */
static uint32_t port_of(const wf_session_run *r, uint32_t number)
{
    for (uint32_t i = 0; i < wf_plan_n_inputs(r->plan->plan); i++)
        if (r->asked[i] == number)
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

/* Errors are the client's. */
static wf_status take_answer(wf_session_run *r, const wf_msg *m, const Weft__VariableAnswer *body,
                             wf_err *err)
{
    uint32_t port = port_of(r, m->head.request);

    if (body->status != WF_OK)
        return wf_fail(err, (wf_status)body->status, body->hint, "%s", body->what);
    if (port != UINT32_MAX) {
        r->asked[port] = 0;
        r->waiting--;
        wf_tensor_free(&r->inputs[port]);
        return take_value(m, body, &r->inputs[port], err);
    }
    r->writing = 0;
    if (is_fetched(r, r->n_written))
        WF_TRY(take_value(m, body, &r->after[r->n_written], err));
    r->n_written++;
    return WF_OK;
}

wf_status wf_run_on_answer(wf_sessions *s, wf_session_run *r, const wf_msg *m, wf_err *err)
{
    Weft__VariableAnswer *body = NULL;
    bool done = false;
    wf_err why = {0};
    wf_status rc = wf_tensors_body(m, &weft__variable_answer__descriptor, &body, &why);

    if (rc == WF_OK)
        rc = take_answer(r, m, body, &why);
    wf_control_free(&body);
    if (rc == WF_OK)
        rc = go_on(s, r, &done, &why);
    return settle(s, r, rc, done, &why, err);
}
