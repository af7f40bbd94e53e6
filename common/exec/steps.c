/* SPDX-License-Identifier: Apache-2.0 */
/* common/exec/steps.c - ports, the nodes that a run needs, and the steps that run them. */
#include "common/base/size.h"
#include "common/exec/plan.h"
#include "common/graph/op.h"

#include <string.h>

/* What a kernel keeps of its shapes, beside tables that grow with them. */
enum { STEP_BYTES = 1 << 14 };

bool wf_plan_is_sink(const wf_node *n)
{
    return n->op->flags & WF_OP_SINK;
}

static bool is_source(const wf_node *n)
{
    return n->op->flags & WF_OP_SOURCE;
}

/* What inference left open is an error here: a plan has bytes to count. */
static wf_status set_tensor(wf_plan *p, const wf_value *v, wf_err *err)
{
    wf_tensor *t = &p->tensors[v->index];
    char text[192];
    int64_t elems;
    size_t bytes;

    if (v->dtype == WF_NONE || !wf_value_dims(v, t->dims))
        return wf_fail(err, WF_SHAPE, "weft plans with shapes that do not depend on the data",
                       "%s%s%s\"%s\" is %s, which is not known before the run",
                       v->producer ? v->producer->op->name : "", v->producer ? " result " : "", "",
                       v->name, wf_value_str(v, text, sizeof text));
    if (!wf_dims_elems((uint32_t)v->rank, t->dims, &elems) ||
        !wf_mul_size((size_t)elems, wf_dtype_size(v->dtype), &bytes) || bytes > INT64_MAX)
        return wf_fail(err, WF_SHAPE, p->limit_hint, "%s%s\"%s\" is %s, which no memory can hold",
                       v->producer ? v->producer->op->name : "", v->producer ? " result " : "",
                       v->name, wf_value_str(v, text, sizeof text));
    t->dtype = v->dtype;
    t->rank = (uint32_t)v->rank;
    return WF_OK;
}

/* What a port's value is called in the graph that the plan was made from. */
static const char *port_name(const wf_value *v)
{
    return v->producer && wf_plan_is_copy(v->producer) ? v->producer->in[0]->name : v->name;
}

static wf_status set_port(wf_plan *p, wf_port *port, const wf_value *v, const char *variable,
                          wf_err *err)
{
    const wf_tensor *t = &p->tensors[v->index];

    WF_TRY(set_tensor(p, v, err));
    *port = (wf_port){.name = port_name(v),
                      .variable = variable,
                      .dtype = t->dtype,
                      .rank = t->rank,
                      .elems = wf_elems(t),
                      .bytes = wf_tensor_bytes(t),
                      .device = p->sides[p->side_of[v->index]].device};
    memcpy(port->dims, t->dims, sizeof port->dims);
    return WF_OK;
}

static wf_status add_in(wf_plan *p, wf_value *v, const char *variable, wf_err *err)
{
    wf_plan_in *in = &p->ins[p->n_ins++];

    in->value = v;
    return set_port(p, &in->port, v, variable, err);
}

static wf_status add_out(wf_plan *p, wf_value *v, const char *variable, wf_err *err)
{
    wf_plan_out *out = &p->outs[p->n_outs++];

    out->value = v;
    out->stream = wf_plan_final_stream(p, v);
    return set_port(p, &out->port, v, variable, err);
}

/* Backwards from the outputs: a folded value needs nothing behind it. */
static void mark_needed(wf_plan *p)
{
    for (uint32_t i = 0; i < p->n_outs; i++)
        p->needed[p->outs[i].value->index] = true;
    for (size_t i = p->g->n_nodes; i-- > 0;) {
        const wf_node *n = p->g->nodes[i];
        bool runs = false;

        for (uint32_t k = 0; k < n->n_out; k++)
            runs = runs ||
                   (n->out[k] && p->needed[n->out[k]->index] && !wf_value_is_constant(n->out[k]));
        for (uint32_t k = 0; runs && k < n->n_in; k++)
            if (n->in[k])
                p->needed[n->in[k]->index] = true;
    }
}

wf_status wf_plan_ports(wf_plan *p, wf_err *err)
{
    wf_graph *g = p->g;
    size_t most = g->n_values + g->n_nodes + g->n_outputs;

    p->ins = wf_arena_array(p->arena, most, sizeof *p->ins);
    p->outs = wf_arena_array(p->arena, most, sizeof *p->outs);
    if (!p->ins || !p->outs)
        return wf_fail_nomem(err, most * sizeof *p->outs);
    for (size_t i = 0; i < g->n_outputs; i++)
        WF_TRY(add_out(p, g->outputs[i], NULL, err));
    for (size_t i = 0; i < g->n_nodes; i++)
        if (wf_plan_is_sink(g->nodes[i]))
            WF_TRY(
                add_out(p, g->nodes[i]->in[0], wf_node_string(g->nodes[i], "variable", ""), err));
    mark_needed(p);
    for (size_t i = 0; i < g->n_inputs; i++)
        WF_TRY(add_in(p, g->inputs[i], NULL, err));
    for (size_t i = 0; i < g->n_nodes; i++)
        if (is_source(g->nodes[i]) && wf_node_has_out(g->nodes[i], 0))
            WF_TRY(
                add_in(p, g->nodes[i]->out[0], wf_node_string(g->nodes[i], "variable", ""), err));
    for (size_t i = 0; i < g->n_values; i++) {
        wf_value *v = g->values[i];

        if (v->variable != WF_VAR_NOT && !v->is_input && !v->producer && p->needed[v->index])
            WF_TRY(add_in(p, v, v->name, err));
    }
    for (uint32_t i = 0; i < p->n_ins; i++)
        p->ins[i].used = p->needed[p->ins[i].value->index];
    return WF_OK;
}

static bool runs(const wf_plan *p, const wf_node *n)
{
    if (is_source(n) || wf_plan_is_sink(n))
        return false;
    for (uint32_t k = 0; k < n->n_out; k++)
        if (n->out[k] && p->needed[n->out[k]->index] && !wf_value_is_constant(n->out[k]))
            return true;
    return false;
}

wf_status wf_plan_nodes(wf_plan *p, wf_err *err)
{
    wf_graph *g = p->g;

    p->nodes = wf_arena_array(p->arena, g->n_nodes, sizeof *p->nodes);
    p->kernels = wf_arena_array(p->arena, g->n_nodes, sizeof *p->kernels);
    if (!p->nodes || !p->kernels)
        return wf_fail_nomem(err, g->n_nodes * sizeof *p->nodes);
    for (size_t i = 0; i < g->n_nodes; i++) {
        wf_node *n = g->nodes[i];

        if (!runs(p, n))
            continue;
        for (uint32_t k = 0; k < n->n_in; k++)
            if (n->in[k])
                WF_TRY(set_tensor(p, n->in[k], err));
        for (uint32_t k = 0; k < n->n_out; k++)
            if (n->out[k])
                WF_TRY(set_tensor(p, n->out[k], err));
        WF_TRY(wf_plan_kernel(p, n, &p->kernels[p->n_nodes], err));
        p->nodes[p->n_nodes++] = n;
    }
    return WF_OK;
}

/* Whether running node i changes nothing: its result is its input's memory. */
static bool is_free(const wf_plan *p, uint32_t i)
{
    const wf_node *n = p->nodes[i];

    return p->kernels[i]->is_view && p->room_of[n->out[0]->index] == p->room_of[n->in[0]->index];
}

static wf_status make_step(wf_plan *p, uint32_t i, wf_step *s, wf_err *err)
{
    wf_node *n = p->nodes[i];
    wf_plan_side *side = &p->sides[wf_plan_side_of(p, n)];
    wf_prep prep = {.node = n,
                    .kernel = p->kernels[i],
                    .device = side->device,
                    .arena = p->arena,
                    .threads = wf_pool_threads(p->pool),
                    .compute = p->compute,
                    .untimed = p->deterministic || p->measure_only,
                    .takes_any = p->measure_only && !p->deterministic};
    wf_status rc = WF_OK;

    s->kernel = p->kernels[i];
    s->in = wf_arena_array(p->arena, n->n_in + (size_t)WF_KERNEL_PORTS, sizeof *s->in);
    s->out = wf_arena_array(p->arena, n->n_out + (size_t)WF_KERNEL_PORTS, sizeof *s->out);
    if (!s->in || !s->out)
        return wf_fail_nomem(err, (n->n_in + n->n_out) * sizeof *s->in);
    for (uint32_t k = 0; k < n->n_in; k++)
        s->in[k] = n->in[k] ? &p->tensors[n->in[k]->index] : NULL;
    for (uint32_t k = 0; k < n->n_out; k++)
        s->out[k] = n->out[k] ? &p->tensors[n->out[k]->index] : NULL;
    s->draws = n->op->flags & WF_OP_RANDOM;
    s->sequence = wf_rng_fold_str(0, n->name);
    if (s->kernel->prepare)
        rc = s->kernel->prepare(&prep, s->in, (const wf_tensor *const *)s->out, err);
    s->run = (wf_run){.node = n,
                      .kernel = s->kernel,
                      .device = prep.device,
                      .stream = wf_plan_stream(p, n),
                      .pool = p->pool,
                      .state = prep.state};
    s->side = (uint8_t)(side - p->sides);
    s->after = wf_plan_after(p, n);
    s->release = prep.release;
    if (rc == WF_NOMEM)
        return wf_plan_too_large(p, p->limit_bytes - p->taken + 1, n, err);
    WF_TRY(wf_err_wrap(err, rc, "%s \"%s\"", n->op->name, n->name));
    if (prep.workspace_bytes > side->workspace_bytes) {
        side->workspace_bytes = prep.workspace_bytes;
        side->hungriest = n;
    }
    return WF_OK;
}

/* Groups outputs by the step that makes them final; step_of maps nodes to steps. */
static void list_ready(wf_plan *p, const uint32_t step_of[])
{
    uint32_t at = 0;

    for (uint32_t o = 0; o < p->n_outs; o++) {
        const wf_room *r = &p->rooms[p->room_of[p->outs[o].value->index]];

        if (r->kind == WF_ROOM_LENT || r->kind == WF_ROOM_CONSTANT)
            p->ready[at++] = o;
    }
    p->n_ready_at_start = at;
    for (uint32_t s = 0; s < p->n_steps; s++) {
        p->steps[s].first_ready = at;
        for (uint32_t o = 0; o < p->n_outs; o++) {
            const wf_room *r = &p->rooms[p->room_of[p->outs[o].value->index]];

            if (r->kind != WF_ROOM_LENT && r->kind != WF_ROOM_CONSTANT && step_of[r->written] == s)
                p->ready[at++] = o;
        }
        p->steps[s].n_ready = at - p->steps[s].first_ready;
    }
}

wf_status wf_plan_steps(wf_plan *p, wf_err *err)
{
    uint32_t *step_of = wf_arena_array(p->arena, p->n_nodes, sizeof *step_of);
    size_t before, tables, own_bytes = STEP_BYTES * (size_t)p->n_nodes;

    p->steps = wf_arena_array(p->arena, p->n_nodes, sizeof *p->steps);
    p->ready = wf_arena_array(p->arena, p->n_outs, sizeof *p->ready);
    wf_arena_allow(p->arena, p->limit_bytes - p->taken + own_bytes);
    before = wf_arena_used(p->arena);
    if (!step_of || !p->steps || !p->ready)
        return wf_fail_nomem(err, p->n_nodes * sizeof *p->steps);
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        if (is_free(p, i))
            continue;
        step_of[i] = p->n_steps;
        WF_TRY(make_step(p, i, &p->steps[p->n_steps++], err));
    }
    tables = wf_arena_used(p->arena) - before;
    p->taken += tables - WF_MIN(tables, own_bytes);
    list_ready(p, step_of);
    p->usage.n_nodes = p->n_steps;
    for (uint32_t i = 0; i < p->n_steps; i++)
        p->usage.n_on_host +=
            p->steps[i].side == WF_SIDE_HOST && !wf_plan_is_copy(p->steps[i].run.node);
    return WF_OK;
}
