/* SPDX-License-Identifier: Apache-2.0 */
/* worker/sessions/plans.c */
#include "worker/sessions/plans.h"
#include "common/onnx/onnx.h"
#include "common/wire/control.h"
#include "common/wire/variables.h"

#include <stdlib.h>
#include <string.h>

static void close_fragment(wf_session_fragment *f)
{
    wf_plan_free(&f->plan);
    wf_graph_free(&f->graph);
    free(f->inputs);
    free(f->outputs);
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
    free(p->results);
    free(p);
}

void wf_session_plan_leave(wf_session_plan **p)
{
    if (*p)
        (*p)->users--;
    *p = NULL;
}

void wf_session_plans_close(wf_session_plans *h)
{
    for (uint32_t i = 0; i < WF_SESSION_PLANS; i++)
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
    for (uint32_t i = 0; i < WF_SESSION_PLANS; i++) {
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
    wf_session_plan **oldest = NULL;

    for (uint32_t i = 0; i < WF_SESSION_PLANS; i++)
        if (is_of(h->rows[i], body->session, body->handle))
            return h->rows[i]->users ? NULL : &h->rows[i];
    for (uint32_t i = 0; i < WF_SESSION_PLANS; i++) {
        if (!h->rows[i])
            return &h->rows[i];
        if (!h->rows[i]->users && (!oldest || h->rows[i]->used < (*oldest)->used))
            oldest = &h->rows[i];
    }
    return oldest;
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

/* What a fragment makes is made nowhere else, and behind the fragments that take it there is none.
 */
static wf_status add_outputs(wf_session_plan *p, wf_session_fragment *f, wf_err *err)
{
    for (size_t i = 0; i < f->body->n_outputs; i++) {
        const char *name = f->body->outputs[i]->value;

        if (wf_session_plan_value(p, name) != UINT32_MAX)
            return wf_fail(err, WF_PROTO, NULL, "a plan has \"%.200s\" from two places", name);
        WF_TRY(add_value(p, name, &f->outputs[i], err));
    }
    return WF_OK;
}

static wf_status list_values(wf_session_plan *p, wf_err *err)
{
    const Weft__SessionPlan *b = p->body;

    for (size_t i = 0; i < b->n_reads; i++)
        WF_TRY(add_value(p, b->reads[i], &p->reads[i], err));
    for (size_t i = 0; i < b->n_fragments; i++) {
        wf_session_fragment *f = &p->fragments[i];

        for (size_t k = 0; k < f->body->n_inputs; k++)
            WF_TRY(add_value(p, f->body->inputs[k], &f->inputs[k], err));
        WF_TRY(add_outputs(p, f, err));
    }
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

static wf_status find_ports(wf_session_fragment *f, wf_err *err)
{
    int64_t at;

    for (size_t i = 0; i < f->body->n_inputs; i++) {
        at = wf_plan_find_input(f->plan, f->body->inputs[i]);
        if (at < 0)
            return wf_fail(err, WF_PROTO, NULL, "a plan takes \"%.200s\", which is no input of it",
                           f->body->inputs[i]);
        f->input_ports[i] = (uint32_t)at;
    }
    for (size_t i = 0; i < f->body->n_outputs; i++) {
        at = wf_plan_find_output(f->plan, f->body->outputs[i]->output);
        if (at < 0)
            return wf_fail(err, WF_PROTO, NULL, "a plan gives \"%.200s\", which it does not make",
                           f->body->outputs[i]->output);
        f->output_ports[i] = (uint32_t)at;
    }
    return WF_OK;
}

/* One that this worker computes. */
static wf_status plan_fragment(wf_session_fragment *f, wf_pool *pool, wf_err *err)
{
    const ProtobufCBinaryData *graph = &f->body->graph;
    wf_plan_options options = {.pool = pool, .limit_bytes = wf_plan_fair_limit(graph->len)};

    WF_TRY(wf_onnx_decode(graph->data, graph->len, NULL, &f->graph, err));
    WF_TRY(wf_plan_new(f->graph, &options, &f->plan, err));
    return find_ports(f, err);
}

static wf_status make_fragment(wf_session_fragment *f, const Weft__SessionFragment *body,
                               wf_err *err)
{
    f->body = body;
    f->inputs = calloc(body->n_inputs + 1, sizeof *f->inputs);
    f->outputs = calloc(body->n_outputs + 1, sizeof *f->outputs);
    f->input_ports = calloc(body->n_inputs + 1, sizeof *f->input_ports);
    f->output_ports = calloc(body->n_outputs + 1, sizeof *f->output_ports);
    return f->inputs && f->outputs && f->input_ports && f->output_ports
               ? WF_OK
               : wf_fail_nomem(err, body->n_inputs * sizeof *f->inputs);
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
    p->results = calloc(b->n_results + 1, sizeof *p->results);
    return p->values && p->fragments && p->reads && p->writes && p->results
               ? WF_OK
               : wf_fail_nomem(err, b->n_reads * sizeof *p->reads);
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
        return wf_fail(err, WF_AGAIN, "try again later", "%d plans are being run",
                       WF_SESSION_PLANS);
    p = calloc(1, sizeof *p);
    if (!p)
        return wf_fail_nomem(err, sizeof *p);
    p->body = *body;
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
