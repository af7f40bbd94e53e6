/* SPDX-License-Identifier: Apache-2.0 */
/* worker/sessions/fragments.c - the fragments of a run: those of this worker are computed here, and
 * others sent, as a client sends a run, to the workers that they are placed on. What they take goes
 * with the request, and what they give comes with the answer. What they receive and send goes from
 * worker to worker (far.c). */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/wire/control.h"
#include "common/wire/tensors.h"
#include "worker/sessions/state.h"

#include <stdlib.h>
#include <string.h>

static bool is_ready(const wf_session_run *r, const wf_session_fragment *f)
{
    for (size_t i = 0; i < f->body->n_inputs; i++)
        if (!r->values[f->inputs[i]])
            return false;
    return true;
}

/* ---- here ---- */

static wf_status bind(const wf_session_run *r, const wf_session_fragment *f, wf_err *err)
{
    for (uint32_t i = 0; i < f->n_ports; i++) {
        const wf_port *port = wf_plan_input(f->plan, f->input_ports[i]);
        const wf_tensor *t = r->values[f->input_values[i]];
        char has[128], wants[128];

        if (t->dtype != port->dtype || t->rank != port->rank ||
            memcmp(t->dims, port->dims, t->rank * sizeof t->dims[0]) != 0)
            return wf_fail(err, WF_SHAPE, "extend a session by the model with its shape as it is",
                           "\"%.200s\" is %s %s, and the graph takes %s %s", port->name,
                           wf_dtype_name(t->dtype), wf_dims_str(t->rank, t->dims, has, sizeof has),
                           wf_dtype_name(port->dtype),
                           wf_dims_str(port->rank, port->dims, wants, sizeof wants));
        wf_plan_bind_input(f->plan, f->input_ports[i], t->data);
    }
    return WF_OK;
}

/* The plan may be another run's next. */
static wf_status keep_outputs(wf_session_run *r, const wf_session_fragment *f, wf_err *err)
{
    for (size_t i = 0; i < f->body->n_outputs; i++) {
        const wf_port *port = wf_plan_output(f->plan, f->output_ports[i]);
        wf_tensor **to = &r->values[f->outputs[i]];

        wf_tensor_free(to);
        WF_TRY(wf_tensor_new(port->dtype, port->rank, port->dims, to, err));
        if (port->bytes)
            memcpy((*to)->data, wf_plan_output_data(f->plan, f->output_ports[i]), port->bytes);
    }
    return WF_OK;
}

static wf_status compute(wf_sessions *s, wf_session_run *r, uint32_t at, wf_err *err)
{
    const wf_session_fragment *f = &r->plan->fragments[at];
    wf_step_key key = {.seed = r->ask->seed};

    if (f->plan) {
        WF_TRY(bind(r, f, err));
        WF_TRY(wf_plan_run(f->plan, &key, NULL, NULL, err));
        WF_TRY(keep_outputs(r, f, err));
    }
    WF_TRY(wf_far_send(s, r, f, err));
    r->states[at] = WF_FRAGMENT_DONE;
    return WF_OK;
}

/* ---- there ---- */

static wf_status send(wf_sessions *s, wf_session_run *r, uint32_t at, wf_msg **m, wf_err *err)
{
    wf_task task = {WF_ROLE_WORKER, r->plan->fragments[at].body->worker};
    wf_peer *peer = NULL;

    WF_TRY(wf_sessions_peer(s, task, &peer, err));
    return wf_requests_send(&s->requests, peer, m, r, &r->sent[at], err);
}

/* A plan of that fragment alone, whose results are what is needed of it. */
static wf_status send_plan(wf_sessions *s, wf_session_run *r, uint32_t at, wf_err *err)
{
    const wf_session_fragment *f = &r->plan->fragments[at];
    Weft__SessionPlan body = WEFT__SESSION_PLAN__INIT;
    Weft__SessionFragment *fragments[1] = {(Weft__SessionFragment *)f->body};
    Weft__SessionResult *results = calloc(f->n_gives + 1, sizeof *results);
    Weft__SessionResult **list = calloc(f->n_gives + 1, sizeof(*list));
    wf_msg *m = NULL;
    wf_status rc = results && list ? WF_OK : wf_fail_nomem(err, f->n_gives);

    for (size_t i = 0; rc == WF_OK && i < f->n_gives; i++) {
        weft__session_result__init(list[i] = &results[i]);
        results[i].value = (char *)r->plan->values[f->gives[i]];
    }
    body.session = s->id;
    body.container = r->plan->body->container;
    body.handle = f->handle;
    body.fragments = fragments;
    body.n_fragments = 1;
    body.results = list;
    body.n_results = f->n_gives;
    if (rc == WF_OK)
        rc = wf_net_msg(s->conf.to_ps, WF_PLAN, &m, err);
    if (rc == WF_OK)
        rc = wf_control_put(m, &body.base, err);
    if (rc == WF_OK)
        rc = send(s, r, at, &m, err);
    wf_net_free_msg(s->conf.to_ps, &m);
    free(results);
    free(list);
    return rc;
}

static wf_status send_run(wf_sessions *s, wf_session_run *r, uint32_t at, wf_err *err)
{
    const wf_session_fragment *f = &r->plan->fragments[at];
    const wf_tensor *tensors[WF_TENSORS_MOST];
    Weft__SessionFeed feeds[WF_TENSORS_MOST], *list[WF_TENSORS_MOST];
    Weft__TensorHead heads[WF_TENSORS_MOST];
    int64_t dims[WF_TENSORS_MOST][WF_MAX_RANK];
    Weft__RunAsk body = WEFT__RUN_ASK__INIT;
    int64_t left_ms = WF_MAX(r->end_ns - s->now_ns, 0) / WF_NS_PER_MS;
    wf_msg *m = NULL;
    wf_status rc;

    if (f->body->n_inputs > WF_TENSORS_MOST)
        return wf_fail(err, WF_FULL, "join some of them", "%zu values go to worker %u; %d may",
                       f->body->n_inputs, f->body->worker, WF_TENSORS_MOST);
    for (size_t i = 0; i < f->body->n_inputs; i++) {
        tensors[i] = r->values[f->inputs[i]];
        weft__session_feed__init(list[i] = &feeds[i]);
        wf_tensor_head(tensors[i], &heads[i], dims[i]);
        feeds[i].name = f->body->inputs[i];
        feeds[i].tensor = &heads[i];
    }
    body.session = s->id;
    body.handle = f->handle;
    body.timeout_ms = (uint32_t)(left_ms * 9 / 10); /* its error is to arrive in time */
    body.seed = r->ask->seed;
    body.client = r->ask->client ? r->ask->client : r->ask->session;
    body.run = r->ask->run;
    body.feeds = list;
    body.n_feeds = f->body->n_inputs;
    WF_TRY(wf_net_msg(s->conf.to_ps, WF_RUN, &m, err));
    rc =
        wf_tensors_put(m, &body.base, (uint32_t)f->body->n_inputs, tensors, s->conf.checksums, err);
    if (rc == WF_OK)
        rc = send(s, r, at, &m, err);
    wf_net_free_msg(s->conf.to_ps, &m);
    return rc;
}

static wf_status send_fragment(wf_sessions *s, wf_session_run *r, uint32_t at, wf_err *err)
{
    r->states[at] = WF_FRAGMENT_IS_AWAY;
    return r->plan->fragments[at].is_sent ? send_run(s, r, at, err) : send_plan(s, r, at, err);
}

static wf_status on_plan_ok(wf_sessions *s, wf_session_run *r, uint32_t at, const wf_msg *m,
                            wf_err *err)
{
    Weft__Outcome *body = NULL;
    wf_status rc = wf_control_get(m, &weft__outcome__descriptor, &body, err);

    if (rc == WF_OK && body->status != WF_OK)
        rc = wf_fail(err, (wf_status)body->status, body->hint, "%s", body->what);
    wf_control_free(&body);
    r->plan->fragments[at].is_sent = rc == WF_OK;
    return rc == WF_OK ? send_run(s, r, at, err) : rc;
}

static wf_status take_outputs(wf_session_run *r, const wf_session_fragment *f, const wf_msg *m,
                              const Weft__RunAnswer *body, wf_err *err)
{
    if (body->n_results != f->n_gives)
        return wf_fail(err, WF_PROTO, "upgrade it", "worker %u gives %zu results for %u",
                       f->body->worker, body->n_results, f->n_gives);
    for (size_t i = 0; i < body->n_results; i++) {
        wf_tensor_free(&r->values[f->gives[i]]);
        WF_TRY(wf_tensors_take(m, (uint32_t)i, body->results[i], &r->values[f->gives[i]], err));
    }
    return WF_OK;
}

static wf_status on_run_ok(wf_sessions *s, wf_session_run *r, uint32_t at, const wf_msg *m,
                           wf_err *err)
{
    wf_session_fragment *f = &r->plan->fragments[at];
    Weft__RunAnswer *body = NULL;
    bool unknown = false;
    wf_status rc = wf_tensors_body(m, &weft__run_answer__descriptor, &body, err);

    if (rc == WF_OK) {
        unknown = body->unknown_plan;
        if (!unknown && body->status != WF_OK)
            rc = wf_fail(err, (wf_status)body->status, body->hint, "%s", body->what);
    }
    if (rc == WF_OK && !unknown) {
        rc = take_outputs(r, f, m, body, err);
        r->states[at] = WF_FRAGMENT_DONE;
    }
    wf_control_free(&body);
    if (!unknown)
        return rc;
    f->is_sent = false; /* it has started again, or forgotten the plan */
    return send_plan(s, r, at, err);
}

wf_status wf_run_on_fragment(wf_sessions *s, wf_session_run *r, uint32_t at, const wf_msg *m,
                             wf_err *err)
{
    r->sent[at] = 0;
    if (m->head.kind == WF_PLAN_OK)
        return on_plan_ok(s, r, at, m, err);
    if (m->head.kind == WF_RUN_OK)
        return on_run_ok(s, r, at, m, err);
    return wf_fail(err, WF_PROTO, "upgrade it", "a worker answers with %s",
                   wf_kind_name(m->head.kind));
}

/* ---- all of them ---- */

/* The first in that state, here or elsewhere, whose values are there; UINT32_MAX: none is. */
static uint32_t find_ready(const wf_session_run *r, bool here, wf_fragment_state state)
{
    for (uint32_t i = 0; i < r->plan->body->n_fragments; i++) {
        const wf_session_fragment *f = &r->plan->fragments[i];

        if (r->states[i] == state && here == f->is_here && is_ready(r, f) &&
            (state == WF_FRAGMENT_WAITS || wf_far_has_all(r, f)))
            return i;
    }
    return UINT32_MAX;
}

/* What others compute leaves first, so that it is computed at the same time; then what this worker
 * receives is asked for. */
static wf_status go_on(wf_sessions *s, wf_session_run *r, bool *any, wf_err *err)
{
    uint32_t at = find_ready(r, false, WF_FRAGMENT_WAITS);

    *any = true;
    if (at != UINT32_MAX) {
        WF_TRY(send_fragment(s, r, at, err));
        wf_net_flush(s->conf.to_ps, s->now_ns);
        return WF_OK;
    }
    at = find_ready(r, true, WF_FRAGMENT_WAITS);
    if (at != UINT32_MAX) {
        r->states[at] = WF_FRAGMENT_RECEIVES;
        return wf_far_receive(s, r, &r->plan->fragments[at], err);
    }
    at = find_ready(r, true, WF_FRAGMENT_RECEIVES);
    *any = at != UINT32_MAX;
    return *any ? compute(s, r, at, err) : WF_OK;
}

wf_status wf_run_is_stuck(const wf_session_run *r, wf_err *err)
{
    for (uint32_t i = 0; i < r->plan->body->n_fragments; i++) {
        const wf_session_fragment *f = &r->plan->fragments[i];

        for (size_t k = 0; r->states[i] == WF_FRAGMENT_WAITS && k < f->body->n_inputs; k++)
            if (!r->values[f->inputs[k]])
                return wf_fail(err, WF_USAGE, "feed it too", "\"%.200s\" is not fed",
                               f->body->inputs[k]);
    }
    return WF_OK;
}

wf_status wf_run_fragments(wf_sessions *s, wf_session_run *r, bool *left, bool *waits, wf_err *err)
{
    for (bool any = true; any;)
        WF_TRY(go_on(s, r, &any, err));
    *left = *waits = false;
    for (uint32_t i = 0; i < r->plan->body->n_fragments; i++) {
        *left |= r->states[i] != WF_FRAGMENT_DONE;
        *waits |= r->states[i] == WF_FRAGMENT_IS_AWAY || r->states[i] == WF_FRAGMENT_RECEIVES;
    }
    return WF_OK;
}
