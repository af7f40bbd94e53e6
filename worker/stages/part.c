/* SPDX-License-Identifier: Apache-2.0 */
/* worker/stages/part.c - the plans of a part. */
#include "worker/stages/part.h"
#include "common/graph/graph.h"

#include <stdlib.h>
#include <string.h>

typedef struct wanted {
    wf_stage_book *book;
    int which;
    const wf_stage_place *place;
} wanted;

/* Axes are fixed, or a multiple of the records: "12*batch". */
static int64_t size_of(const wf_axis *axis, uint64_t records)
{
    int64_t size, factor = 1;

    if (axis->size >= 0)
        return axis->size;
    if (axis->symbol && axis->symbol[0] >= '0' && axis->symbol[0] <= '9')
        factor = strtol(axis->symbol, NULL, 10);
    return __builtin_mul_overflow(factor, (int64_t)records, &size) ? INT64_MAX : size;
}

static int64_t edge_size(const Weft__StageEdge *e, size_t axis, uint64_t records)
{
    return e->sizes[axis] < 0 ? -e->sizes[axis] * (int64_t)records : e->sizes[axis];
}

/* What the forward part makes has the shape that its plan gives it. */
static const wf_port *made_by_forward(const wanted *w, const char *name, uint64_t records)
{
    wf_stage_part *forward = &w->book->parts[WF_PART_FORWARD];

    if (w->which != WF_PART_BACKWARD || !forward->graph)
        return NULL;
    for (size_t i = 0; i < WF_PLANS_MOST; i++) {
        const wf_plan *p = forward->plans.rows[i].plan;
        int64_t at =
            p && forward->plans.rows[i].records == records ? wf_plan_find_output(p, name) : -1;

        if (at >= 0)
            return wf_plan_output(p, (uint32_t)at);
    }
    return NULL;
}

static void shape_input(const wanted *w, const wf_value *v, uint64_t records, wf_plan_shape *out)
{
    const wf_stage_book *b = w->book;
    const wf_port *made = made_by_forward(w, v->name, records);
    int32_t edge = -1;

    for (uint32_t i = 0; i < b->n_values; i++)
        if (strcmp(b->values[i].name, v->name) == 0)
            edge = b->values[i].edge;
    out->name = v->name;
    out->rank = made        ? made->rank
                : edge >= 0 ? (uint32_t)b->edges[edge]->n_sizes
                            : (uint32_t)(v->rank > 0 ? v->rank : 0);
    for (uint32_t i = 0; i < out->rank; i++)
        out->dims[i] = made        ? made->dims[i]
                       : edge >= 0 ? edge_size(b->edges[edge], i, records)
                                   : size_of(&v->axes[i], records);
}

/* Names the ports that lie on the device: values that are read or made, and variables that live
 * there. The caller frees *out. */
static wf_status list_resident(const wanted *w, const wf_graph *g, const char ***out, size_t *n,
                               wf_err *err)
{
    const Weft__Start *start = w->book->start;
    size_t most = g->n_inputs + g->n_outputs + start->n_variables + 1;

    *n = 0;
    *out = calloc(most, sizeof(**out));
    if (!*out)
        return wf_fail_nomem(err, most * sizeof(**out));
    if (w->place->device->is_host)
        return WF_OK;
    for (size_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]->first_use)
            (*out)[(*n)++] = g->inputs[i]->name;
    for (size_t i = 0; i < g->n_outputs; i++)
        (*out)[(*n)++] = g->outputs[i]->name;
    for (uint32_t i = 0; w->place->home && i < start->n_variables; i++)
        if (!wf_exchange_home(start, w->place->home, i)->is_host)
            (*out)[(*n)++] = start->variables[i]->name;
    return WF_OK;
}

static wf_status make_plan(void *arg, uint64_t records, wf_plan **out, wf_err *err)
{
    const wanted *w = arg;
    const wf_graph *g = w->book->parts[w->which].graph;
    const Weft__Start *start = w->book->start;
    wf_plan_shape *shapes = calloc(g->n_inputs + 1, sizeof *shapes);
    const char **resident = NULL;
    wf_plan_options options = {.device = w->place->device,
                               .pool = w->place->pool,
                               .shapes = shapes,
                               .compute = (wf_compute)start->compute,
                               .deterministic = start->deterministic};
    wf_status rc;

    if (!shapes)
        return wf_fail_nomem(err, g->n_inputs * sizeof *shapes);
    for (size_t i = 0; i < g->n_inputs; i++)
        shape_input(w, g->inputs[i], records, &shapes[options.n_shapes++]);
    rc = list_resident(w, g, &resident, &options.n_resident, err);
    options.resident = resident;
    if (rc == WF_OK)
        rc = wf_plan_new(g, &options, out, err);
    free(resident);
    free(shapes);
    return rc;
}

static int32_t find_variable(const Weft__Start *start, const char *name)
{
    for (size_t i = 0; name && i < start->n_variables; i++)
        if (strcmp(start->variables[i]->name, name) == 0)
            return (int32_t)i;
    return -1;
}

static wf_status port_of(const wf_stage_book *b, const wf_port *port, wf_stage_port *out,
                         wf_err *err)
{
    *out = (wf_stage_port){-1, find_variable(b->start, port->variable)};
    if (out->variable >= 0 && b->start->variables[out->variable]->stage != b->start->stage)
        return wf_fail(err, WF_PROTO, NULL, "variable \"%.200s\" is of stage %u, and not of %u",
                       port->variable, b->start->variables[out->variable]->stage, b->start->stage);
    for (uint32_t i = 0; !port->variable && i < b->n_values; i++)
        if (strcmp(b->values[i].name, port->name) == 0)
            out->value = (int32_t)i;
    return WF_OK;
}

static wf_status map_ports(wf_stage_book *b, wf_stage_part *part, const wf_plan *p, wf_err *err)
{
    part->n_in = wf_plan_n_inputs(p);
    part->n_out = wf_plan_n_outputs(p);
    part->in = calloc(part->n_in + (size_t)1, sizeof *part->in);
    part->out = calloc(part->n_out + (size_t)1, sizeof *part->out);
    if (!part->in || !part->out)
        return wf_fail_nomem(err, part->n_in * sizeof *part->in);
    for (uint32_t i = 0; i < part->n_in; i++)
        WF_TRY(port_of(b, wf_plan_input(p, i), &part->in[i], err));
    for (uint32_t i = 0; i < part->n_out; i++)
        WF_TRY(port_of(b, wf_plan_output(p, i), &part->out[i], err));
    return WF_OK;
}

wf_status wf_stage_part_plan(wf_stage_book *b, int which, uint64_t records,
                             const wf_stage_place *place, wf_plan **out, wf_err *err)
{
    wf_stage_part *part = &b->parts[which];
    wanted w = {b, which, place};

    WF_TRY(wf_plans_get(&part->plans, records, make_plan, &w, out, err));
    return part->in ? WF_OK : map_ports(b, part, *out, err);
}
