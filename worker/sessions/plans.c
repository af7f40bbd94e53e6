/* SPDX-License-Identifier: Apache-2.0 */
/* worker/sessions/plans.c */
#include "worker/sessions/plans.h"
#include "common/onnx/onnx.h"
#include "common/wire/control.h"
#include "common/wire/tensors.h"
#include "common/wire/variables.h"
#include "worker/sessions/rendezvous.h"

#include <stdlib.h>
#include <string.h>

static void close_fragment(wf_session_fragment *f)
{
    wf_plan_free(&f->plan);
    wf_graph_free(&f->graph);
    free(f->inputs);
    free(f->outputs);
    free(f->receives);
    free(f->sends);
    free(f->gives);
    free(f->input_values);
    free(f->input_ports);
    free(f->output_ports);
}

static void free_plan(wf_session_plan **at)
{
    wf_session_plan *p = *at;

    *at = NULL;
    if (!p)
        return;
    for (size_t i = 0; p->fragments && i < p->body->n_fragments; i++)
        close_fragment(&p->fragments[i]);
    wf_control_free(&p->body);
    free(p->values);
    free(p->fragments);
    free(p->reads);
    free(p->writes);
    free(p->after);
    free(p->results);
    free(p);
}

void wf_session_plan_leave(wf_session_plan **p)
{
    if (*p)
        (*p)->users--;
    *p = NULL;
}

void wf_session_plans_drop(wf_session_plans *h, const void *from)
{
    for (uint32_t i = 0; i < WF_SESSION_ROWS; i++)
        if (h->rows[i] && h->rows[i]->from == from && !h->rows[i]->users)
            free_plan(&h->rows[i]);
}

void wf_session_plans_close(wf_session_plans *h)
{
    for (uint32_t i = 0; i < WF_SESSION_ROWS; i++)
        free_plan(&h->rows[i]);
    *h = (wf_session_plans){0};
}

/* ---- finding ---- */

static bool is_of(const wf_session_plan *p, uint64_t session, uint32_t handle)
{
    return p && p->body->session == session && p->body->handle == handle;
}

wf_session_plan *wf_session_plans_take(wf_session_plans *h, uint64_t session, uint32_t handle)
{
    for (uint32_t i = 0; i < WF_SESSION_ROWS; i++) {
        wf_session_plan *p = h->rows[i];

        if (!is_of(p, session, handle))
            continue;
        p->users++;
        p->used = ++h->uses;
        return p;
    }
    return NULL;
}

/* Where a plan of that name is, or is to be; NULL when no place can be had. */
static wf_session_plan **place_for(wf_session_plans *h, const Weft__SessionPlan *body)
{
    wf_session_plan **oldest = NULL, **empty = NULL;
    uint32_t idle = 0;

    for (uint32_t i = 0; i < WF_SESSION_ROWS; i++)
        if (is_of(h->rows[i], body->session, body->handle))
            return h->rows[i]->users ? NULL : &h->rows[i];
    for (uint32_t i = 0; i < WF_SESSION_ROWS; i++) {
        wf_session_plan **at = &h->rows[i];

        if (!*at && !empty)
            empty = at;
        if (!*at || (*at)->users)
            continue;
        idle++;
        if (!oldest || (*at)->used < (*oldest)->used)
            oldest = at;
    }
    return empty && idle < WF_SESSION_PLANS ? empty : oldest;
}

bool wf_session_plan_is_far(const wf_session_plan *p)
{
    for (size_t i = 0; i < p->body->n_fragments; i++)
        if (p->body->fragments[i]->n_sends || p->body->fragments[i]->n_receives)
            return true;
    return false;
}

/* ---- making ---- */

uint32_t wf_session_plan_value(const wf_session_plan *p, const char *name)
{
    for (uint32_t i = 0; i < p->n_values; i++)
        if (strcmp(p->values[i], name) == 0)
            return i;
    return UINT32_MAX;
}

/* The value of that name, a new one if there is none. */
static wf_status add_value(wf_session_plan *p, const char *name, uint32_t *out, wf_err *err)
{
    *out = wf_session_plan_value(p, name);
    if (*out != UINT32_MAX)
        return WF_OK;
    if (p->n_values == WF_SESSION_VALUES)
        return wf_fail(err, WF_FULL, "run it in parts", "a plan of more than %d values",
                       WF_SESSION_VALUES);
    *out = p->n_values;
    p->values[p->n_values++] = name;
    return WF_OK;
}

/* A value that comes from one place, and before all that take it. */
static wf_status add_source(wf_session_plan *p, const char *name, uint32_t *out, wf_err *err)
{
    if (wf_session_plan_value(p, name) != UINT32_MAX)
        return wf_fail(err, WF_PROTO, NULL, "a plan has \"%.200s\" from two places", name);
    return add_value(p, name, out, err);
}

static bool is_among(const uint32_t values[], size_t n, uint32_t value)
{
    for (size_t i = 0; i < n; i++)
        if (values[i] == value)
            return true;
    return false;
}

/* What a fragment sends it takes, receives or makes. */
static wf_status find_sent(const wf_session_plan *p, wf_session_fragment *f, size_t i, wf_err *err)
{
    const Weft__SessionFragment *b = f->body;
    uint32_t value = wf_session_plan_value(p, b->sends[i]->value);

    f->sends[i] = value;
    if (is_among(f->inputs, b->n_inputs, value) || is_among(f->receives, b->n_receives, value) ||
        is_among(f->outputs, b->n_outputs, value))
        return WF_OK;
    return wf_fail(err, WF_PROTO, NULL, "a plan sends \"%.200s\", which its fragment has not",
                   b->sends[i]->value);
}

static wf_status add_fragment(wf_session_plan *p, wf_session_fragment *f, wf_err *err)
{
    const Weft__SessionFragment *b = f->body;

    for (size_t i = 0; i < b->n_inputs; i++)
        WF_TRY(add_value(p, b->inputs[i], &f->inputs[i], err));
    for (size_t i = 0; i < b->n_receives; i++)
        WF_TRY(add_source(p, b->receives[i]->value, &f->receives[i], err));
    for (size_t i = 0; i < b->n_outputs; i++)
        WF_TRY(add_source(p, b->outputs[i]->value, &f->outputs[i], err));
    for (size_t i = 0; i < b->n_sends; i++)
        WF_TRY(find_sent(p, f, i, err));
    return WF_OK;
}

/* Writes that fragments need the result of come first. */
static wf_status add_early_writes(wf_session_plan *p, wf_err *err)
{
    const Weft__SessionPlan *b = p->body;

    for (size_t i = 0; i < b->n_writes; i++) {
        if (!b->writes[i]->after[0])
            continue;
        if (i != p->n_early)
            return wf_fail(err, WF_PROTO, NULL, "a plan has its writes in another order");
        WF_TRY(add_source(p, b->writes[i]->after, &p->after[p->n_early], err));
        p->n_early++;
    }
    return WF_OK;
}

static wf_status list_values(wf_session_plan *p, wf_err *err)
{
    const Weft__SessionPlan *b = p->body;

    for (size_t i = 0; i < b->n_reads; i++)
        WF_TRY(add_value(p, b->reads[i], &p->reads[i], err));
    WF_TRY(add_early_writes(p, err));
    for (size_t i = 0; i < b->n_fragments; i++)
        WF_TRY(add_fragment(p, &p->fragments[i], err));
    for (size_t i = 0; i < b->n_writes; i++) {
        if (b->writes[i]->action != WF_VARIABLE_ASSIGN && b->writes[i]->action != WF_VARIABLE_ADD)
            return wf_fail(err, WF_PROTO, NULL, "a plan writes \"%.200s\" by action %u",
                           b->writes[i]->variable, b->writes[i]->action);
        WF_TRY(add_value(p, b->writes[i]->value, &p->writes[i], err));
    }
    for (size_t i = 0; i < b->n_results; i++) {
        if (b->results[i]->write > b->n_writes)
            return wf_fail(err, WF_PROTO, NULL, "a plan gives write %u of %zu",
                           b->results[i]->write, b->n_writes);
        if (!b->results[i]->write)
            WF_TRY(add_value(p, b->results[i]->value, &p->results[i], err));
    }
    return WF_OK;
}

/* Whether the run, or a fragment but f, needs the value. */
static bool is_needed(const wf_session_plan *p, const wf_session_fragment *f, uint32_t value)
{
    for (size_t i = 0; i < p->body->n_fragments; i++)
        for (size_t k = 0; k < p->fragments[i].body->n_inputs; k++)
            if (&p->fragments[i] != f && p->fragments[i].inputs[k] == value)
                return true;
    for (size_t i = 0; i < p->body->n_writes; i++)
        if (p->writes[i] == value)
            return true;
    for (size_t i = 0; i < p->body->n_results; i++)
        if (!p->body->results[i]->write && p->results[i] == value)
            return true;
    return false;
}

static void list_gives(const wf_session_plan *p, wf_session_fragment *f)
{
    for (size_t i = 0; i < f->body->n_outputs; i++)
        if (is_needed(p, f, f->outputs[i]))
            f->gives[f->n_gives++] = f->outputs[i];
    for (size_t i = 0; i < f->body->n_receives; i++)
        if (is_needed(p, f, f->receives[i]))
            f->gives[f->n_gives++] = f->receives[i];
}

/* What the fragment is given goes to its graph, or is sent on. */
static wf_status add_port(wf_session_fragment *f, const char *name, uint32_t value, wf_err *err)
{
    int64_t at = f->plan ? wf_plan_find_input(f->plan, name) : -1;

    if (at < 0 && (is_among(f->sends, f->body->n_sends, value) || !f->plan))
        return WF_OK;
    if (at < 0)
        return wf_fail(err, WF_PROTO, NULL, "a plan takes \"%.200s\", which is no input of it",
                       name);
    f->input_ports[f->n_ports] = (uint32_t)at;
    f->input_values[f->n_ports++] = value;
    return WF_OK;
}

static wf_status find_ports(wf_session_fragment *f, wf_err *err)
{
    int64_t at;

    for (size_t i = 0; i < f->body->n_inputs; i++)
        WF_TRY(add_port(f, f->body->inputs[i], f->inputs[i], err));
    for (size_t i = 0; i < f->body->n_receives; i++)
        if (f->plan && wf_plan_find_input(f->plan, f->body->receives[i]->value) >= 0)
            WF_TRY(add_port(f, f->body->receives[i]->value, f->receives[i], err));
    for (size_t i = 0; i < f->body->n_outputs; i++) {
        const char *output = f->body->outputs[i]->output;

        at = f->plan ? wf_plan_find_output(f->plan, output) : -1;
        if (at < 0)
            return wf_fail(err, WF_PROTO, NULL, "a plan gives \"%.200s\", which it does not make",
                           output);
        f->output_ports[i] = (uint32_t)at;
    }
    return WF_OK;
}

/* One that this worker computes. */
static wf_status plan_fragment(wf_session_fragment *f, wf_pool *pool, wf_err *err)
{
    const ProtobufCBinaryData *graph = &f->body->graph;
    wf_plan_options options = {
        .pool = pool,
        .limit_bytes = wf_plan_fair_limit(graph->len),
        .limit_hint =
            "compute it in several runs, or with smaller feeds: what is in hand at a time "
            "may take 1 GiB, and 1024 times the bytes of the graph"};

    f->is_here = true;
    if (graph->len) {
        WF_TRY(wf_onnx_decode(graph->data, graph->len, NULL, &f->graph, err));
        WF_TRY(wf_plan_new(f->graph, &options, &f->plan, err));
    }
    return find_ports(f, err);
}

static wf_status make_fragment(wf_session_fragment *f, const Weft__SessionFragment *body,
                               wf_err *err)
{
    size_t taken = body->n_inputs + body->n_receives, given = body->n_outputs + body->n_receives;

    f->body = body;
    f->inputs = calloc(body->n_inputs + 1, sizeof *f->inputs);
    f->outputs = calloc(body->n_outputs + 1, sizeof *f->outputs);
    f->receives = calloc(body->n_receives + 1, sizeof *f->receives);
    f->sends = calloc(body->n_sends + 1, sizeof *f->sends);
    f->gives = calloc(given + 1, sizeof *f->gives);
    f->input_ports = calloc(taken + 1, sizeof *f->input_ports);
    f->input_values = calloc(taken + 1, sizeof *f->input_values);
    f->output_ports = calloc(body->n_outputs + 1, sizeof *f->output_ports);
    return f->inputs && f->outputs && f->receives && f->sends && f->gives && f->input_ports &&
                   f->input_values && f->output_ports
               ? WF_OK
               : wf_fail_nomem(err, taken * sizeof *f->inputs);
}

static wf_status make_room(wf_session_plan *p, wf_err *err)
{
    const Weft__SessionPlan *b = p->body;

    if (b->n_fragments > WF_SESSION_FRAGMENTS)
        return wf_fail(err, WF_FULL, "run it in parts", "a plan of %zu fragments; it may have %d",
                       b->n_fragments, WF_SESSION_FRAGMENTS);
    p->values = calloc(WF_SESSION_VALUES, sizeof *p->values);
    p->fragments = calloc(b->n_fragments + 1, sizeof *p->fragments);
    p->reads = calloc(b->n_reads + 1, sizeof *p->reads);
    p->writes = calloc(b->n_writes + 1, sizeof *p->writes);
    p->after = calloc(b->n_writes + 1, sizeof *p->after);
    p->results = calloc(b->n_results + 1, sizeof *p->results);
    return p->values && p->fragments && p->reads && p->writes && p->after && p->results
               ? WF_OK
               : wf_fail_nomem(err, b->n_reads * sizeof *p->reads);
}

static wf_status check_far(const wf_session_place *place, const Weft__SessionFragment *f,
                           wf_err *err)
{
    size_t bytes;

    for (size_t i = 0; i < f->n_receives; i++) {
        const Weft__SessionReceive *r = f->receives[i];

        if (r->from >= place->n_workers || r->number >= WF_RENDEZVOUS_NUMBERS || !r->head)
            return wf_fail(err, WF_PROTO, NULL, "Recv %u of worker %u of %u", r->number, r->from,
                           place->n_workers);
        WF_TRY(wf_tensor_head_check(r->head, &bytes, err));
    }
    for (size_t i = 0; i < f->n_sends; i++)
        if (f->sends[i]->to >= place->n_workers || f->sends[i]->number >= WF_RENDEZVOUS_NUMBERS)
            return wf_fail(err, WF_PROTO, NULL, "Send %u to worker %u of %u", f->sends[i]->number,
                           f->sends[i]->to, place->n_workers);
    return WF_OK;
}

static wf_status make(wf_session_plan *p, wf_session_plans *h, const wf_session_place *place,
                      wf_err *err)
{
    WF_TRY(make_room(p, err));
    for (size_t i = 0; i < p->body->n_fragments; i++)
        WF_TRY(make_fragment(&p->fragments[i], p->body->fragments[i], err));
    WF_TRY(list_values(p, err));
    for (size_t i = 0; i < p->body->n_fragments; i++) {
        wf_session_fragment *f = &p->fragments[i];

        if (f->body->worker >= place->n_workers)
            return wf_fail(err, WF_PROTO, NULL, "a plan for worker %u of %u", f->body->worker,
                           place->n_workers);
        WF_TRY(check_far(place, f->body, err));
        list_gives(p, f);
        if (f->body->worker == place->worker)
            WF_TRY(plan_fragment(f, place->pool, err));
        else
            f->handle = ++h->handles;
    }
    return WF_OK;
}

wf_status wf_session_plans_put(wf_session_plans *h, Weft__SessionPlan **body,
                               const wf_session_place *place, wf_err *err)
{
    wf_session_plan **at = place_for(h, *body), *p;
    wf_status rc;

    if (!at)
        return wf_fail(err, WF_AGAIN, "try again later", "%d plans are being run", WF_SESSION_ROWS);
    p = calloc(1, sizeof *p);
    if (!p)
        return wf_fail_nomem(err, sizeof *p);
    p->body = *body;
    p->from = place->from;
    *body = NULL;
    rc = make(p, h, place, err);
    if (rc != WF_OK) {
        free_plan(&p);
        return rc;
    }
    free_plan(at);
    p->used = ++h->uses;
    *at = p;
    return WF_OK;
}
