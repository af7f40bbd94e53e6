/* SPDX-License-Identifier: Apache-2.0 */
/* common/exec/plan.c - making plans, and binding their ports. */
#include "common/exec/plan.h"
#include "common/base/machine.h"
#include "common/base/size.h"
#include "common/graph/narrow.h"
#include "common/graph/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static wf_status make_tables(wf_plan *p, wf_err *err)
{
    size_t n = p->g->n_values;

    p->tensors = wf_arena_array(p->arena, n, sizeof *p->tensors);
    p->room_of = wf_arena_array(p->arena, n, sizeof *p->room_of);
    p->next_in_room = wf_arena_array(p->arena, n, sizeof *p->next_in_room);
    p->needed = wf_arena_array(p->arena, n, sizeof *p->needed);
    if (!p->tensors || !p->room_of || !p->next_in_room || !p->needed)
        return wf_fail_nomem(err, n * sizeof *p->tensors);
    for (size_t i = 0; i < n; i++) {
        p->room_of[i] = WF_NO_ROOM;
        p->next_in_room[i] = WF_NO_ROOM;
    }
    return WF_OK;
}

/* Constants have their addresses before kernels are prepared, who may look at them. */
static void set_constants(wf_plan *p)
{
    for (size_t i = 0; i < p->g->n_values; i++) {
        const wf_value *v = p->g->values[i];
        uint32_t room = p->room_of[i];

        if (room != WF_NO_ROOM && p->rooms[room].kind == WF_ROOM_CONSTANT &&
            wf_value_is_constant(v))
            wf_room_move(p, room, v->known->data);
    }
}

/* Variables that stay in the graph start out with their own content, which is the host's. */
static void set_variables(wf_plan *p)
{
    for (uint32_t i = 0; i < p->n_ins; i++)
        if (p->ins[i].value->variable != WF_VAR_NOT && p->ins[i].value->known &&
            p->ins[i].port.device->is_host)
            wf_plan_bind_input(p, i, p->ins[i].value->known->data);
}

/* Those of the host's side are done when they are announced. */
static wf_status make_events(wf_plan *p, wf_err *err)
{
    for (uint32_t i = 0; i < p->n_outs; i++)
        WF_TRY(wf_device_event_new(p->outs[i].stream->device, &p->outs[i].done, err));
    return WF_OK;
}

/* That of the host and of the devices. */
static size_t all_memory(const wf_plan_options *o)
{
    size_t all = wf_device_memory(&wf_cpu);

    if (o->device && !o->device->is_host && !wf_add_size(all, wf_device_memory(o->device), &all))
        all = SIZE_MAX;
    for (size_t i = 0; i < o->n_devices; i++)
        if (!o->devices[i]->is_host && !wf_add_size(all, wf_device_memory(o->devices[i]), &all))
            all = SIZE_MAX;
    return all;
}

/* Values are kept narrow where the graph says so of the devices, and only if all of them multiply
 * such values as they are: elsewhere that would round them for nothing. *on_gpus: so they are, by
 * GPUs alone. */
static wf_status choose_narrow(wf_graph *g, const wf_plan_options *o, bool *on_gpus, wf_err *err)
{
    const wf_dtype type = wf_compute_kept(o->compute);
    const wf_device *first = o->device ? o->device : &wf_cpu;
    bool keeps = type != WF_NONE && wf_kernels_keep_narrow(first, type);
    bool more = wf_kernels_keep_convolved(first);

    for (size_t i = 0; keeps && i < o->n_devices; i++) {
        keeps = wf_kernels_keep_narrow(o->devices[i], type);
        more = more && wf_kernels_keep_convolved(o->devices[i]);
    }
    if (!keeps)
        wf_narrow_drop(g);
    *on_gpus = keeps && more;
    return *on_gpus ? wf_narrow_for_gpus(g, type, err) : WF_OK;
}

static wf_status build(wf_plan *p, const wf_graph *g, const wf_plan_options *o, wf_err *err)
{
    bool on_gpus;

    p->arena = wf_arena_new(0);
    if (!p->arena)
        return wf_fail_nomem(err, sizeof *p);
    p->sides[WF_SIDE_HOST].device = &wf_cpu;
    p->n_sides = 1;
    WF_TRY(wf_plan_side_open(&p->sides[WF_SIDE_HOST], err));
    p->pool = o->pool;
    p->compute = o->compute;
    p->deterministic = o->deterministic;
    p->measure_only = o->measure_only;
    /* Sums with it do not overflow. */
    p->limit_bytes = WF_MIN(o->limit_bytes ? o->limit_bytes : all_memory(o), SIZE_MAX / 2);
    p->limit_hint =
        o->limit_hint ? o->limit_hint : "lower \"batch\", or take a machine with more memory";
    WF_TRY(wf_graph_copy(g, &p->g, err));
    WF_TRY(choose_narrow(p->g, o, &on_gpus, err));
    WF_TRY(wf_plan_shapes(p, o, err));
    if (on_gpus)
        WF_TRY(wf_plan_layout(p, err));
    WF_TRY(wf_plan_sides(p, o, err));
    WF_TRY(make_tables(p, err));
    WF_TRY(wf_plan_ports(p, err));
    WF_TRY(wf_plan_nodes(p, err));
    WF_TRY(wf_plan_rooms(p, err));
    set_constants(p);
    WF_TRY(wf_plan_lay_out(p, err));
    WF_TRY(wf_plan_steps(p, err));
    WF_TRY(wf_plan_order(p, err));
    WF_TRY(wf_plan_place(p, err));
    WF_TRY(wf_plan_draws(p, err));
    WF_TRY(wf_plan_upload(p, err));
    WF_TRY(make_events(p, err));
    WF_TRY(wf_plan_stretches(p, err));
    set_variables(p);
    return WF_OK;
}

wf_status wf_plan_new(const wf_graph *g, const wf_plan_options *options, wf_plan **out, wf_err *err)
{
    wf_status rc;
    wf_plan *p = calloc(1, sizeof *p);

    if (!p)
        return wf_fail_nomem(err, sizeof *p);
    rc = build(p, g, options, err);
    if (rc == WF_OK) {
        *out = p;
        p = NULL;
    }
    wf_plan_free(&p);
    return rc;
}

void wf_plan_free(wf_plan **p)
{
    if (!*p)
        return;
    for (uint32_t i = 0; i < (*p)->n_outs; i++)
        wf_device_event_free(&(*p)->outs[i].done);
    for (uint32_t i = 0; i < (*p)->n_groups; i++)
        wf_device_event_free(&(*p)->groups[i]);
    for (uint32_t side = 0; side < (*p)->n_sides; side++) /* first: what is queued uses the rest */
        wf_plan_side_close(&(*p)->sides[side]);
    wf_plan_forget(*p);
    for (uint32_t i = 0; i < (*p)->n_steps; i++) {
        if ((*p)->steps[i].release)
            (*p)->steps[i].release((void *)(*p)->steps[i].run.state);
        wf_buf_unref(&(*p)->steps[i].room_ahead);
    }
    for (uint32_t i = 0; i < (*p)->n_outs; i++)
        wf_buf_unref(&(*p)->outs[i].own);
    for (uint32_t side = 0; side < (*p)->n_sides; side++) {
        wf_buf_unref(&(*p)->sides[side].memory);
        wf_buf_unref(&(*p)->sides[side].constants);
        wf_buf_unref(&(*p)->sides[side].workspace);
        wf_buf_unref(&(*p)->sides[side].keys);
        wf_buf_unref(&(*p)->sides[side].keys_there);
    }
    wf_graph_free(&(*p)->g);
    wf_arena_free(&(*p)->arena);
    free(*p);
    *p = NULL;
}

uint32_t wf_plan_n_inputs(const wf_plan *p)
{
    return p->n_ins;
}

uint32_t wf_plan_n_outputs(const wf_plan *p)
{
    return p->n_outs;
}

const wf_port *wf_plan_input(const wf_plan *p, uint32_t i)
{
    wf_assert(i < p->n_ins);
    return &p->ins[i].port;
}

const wf_port *wf_plan_output(const wf_plan *p, uint32_t i)
{
    wf_assert(i < p->n_outs);
    return &p->outs[i].port;
}

static bool is_called(const wf_port *port, const char *name)
{
    return strcmp(port->name, name) == 0 || (port->variable && strcmp(port->variable, name) == 0);
}

int64_t wf_plan_find_input(const wf_plan *p, const char *name)
{
    for (uint32_t i = 0; i < p->n_ins; i++)
        if (is_called(&p->ins[i].port, name))
            return i;
    return -1;
}

int64_t wf_plan_find_output(const wf_plan *p, const char *name)
{
    for (uint32_t i = 0; i < p->n_outs; i++)
        if (is_called(&p->outs[i].port, name))
            return i;
    return -1;
}

void wf_plan_bind_input(wf_plan *p, uint32_t i, const void *data)
{
    wf_assert(i < p->n_ins);
    if (p->ins[i].used) /* kernels take inputs as const; nothing writes to a lent room */
        wf_room_move(p, p->room_of[p->ins[i].value->index], (void *)(uintptr_t)data);
}

void wf_plan_bind_output(wf_plan *p, uint32_t i, void *data)
{
    wf_plan_out *out;

    wf_assert(i < p->n_outs);
    out = &p->outs[i];
    out->bound = data;
    if (out->direct)
        wf_room_move(p, p->room_of[out->value->index],
                     data       ? data
                     : out->own ? out->own->data
                                : NULL);
}

const void *wf_plan_output_data(const wf_plan *p, uint32_t i)
{
    wf_assert(i < p->n_outs);
    return p->outs[i].bound ? p->outs[i].bound : p->tensors[p->outs[i].value->index].data;
}

wf_plan_usage wf_plan_memory(const wf_plan *p)
{
    return p->usage;
}

void wf_plan_host_operations(const wf_plan *p, char *text, size_t size)
{
    size_t at = 0;

    text[0] = 0;
    for (uint32_t i = 0; p->n_sides > 1 && i < p->n_steps; i++) {
        const wf_step *s = &p->steps[i];
        bool named = s->side != WF_SIDE_HOST || wf_plan_is_copy(s->run.node);

        for (uint32_t k = 0; k < i && !named; k++)
            named = p->steps[k].side == WF_SIDE_HOST && p->steps[k].run.node->op == s->run.node->op;
        if (!named && at < size)
            at += (size_t)snprintf(text + at, size - at, "%s%s", at ? ", " : "",
                                   s->run.node->op->name);
    }
}
