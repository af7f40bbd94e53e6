/* SPDX-License-Identifier: Apache-2.0 */
/* common/exec/devices.c - which side each node of a plan runs on, and the copies between the sides.
 *
 * The host's side is for what is fed and fetched, for nodes that are marked so, and for operations
 * without a kernel on their device. A value lies on the side of the node that makes it; what is
 * given (inputs, variables, constants) lies on the host, and a resident input on the first device.
 * Where a node reads a value of another side, a Copy node makes its twin there, from one device to
 * another by way of the host; a constant's twin is a constant that is copied once, when the plan is
 * made. Each port of the plan whose value lies elsewhere gets a Copy of its own right behind the
 * node that makes its value, so that gradients leave as early as they can.
 *
 * A plan for the host alone has one side, and its graph stays as it is.
 */
#include "common/base/size.h"
#include "common/exec/plan.h"
#include "common/graph/op.h"
#include "common/tensor/device.h"

#include <string.h>

/* Only plans have it, in their own copy of a graph. */
static wf_status infer_copy(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g, (void)err;
    n->out[0]->dtype = n->in[0]->dtype;
    n->out[0]->rank = n->in[0]->rank;
    memcpy(n->out[0]->axes, n->in[0]->axes, sizeof n->out[0]->axes);
    return WF_OK;
}

static const wf_op copy_op = {
    .name = "Copy",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .means = "(x) -> x in the memory of another device",
    .n_in_min = 1,
    .n_in_max = 1,
    .n_out_min = 1,
    .n_out_max = 1,
    .infer = infer_copy,
};

static wf_status copy_in(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                         wf_err *err)
{
    return wf_stream_copy(run->stream, WF_COPY_IN, out[0]->data, in[0]->data,
                          wf_tensor_bytes(in[0]), err);
}

static wf_status copy_out(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                          wf_err *err)
{
    return wf_stream_copy(run->stream, WF_COPY_OUT, out[0]->data, in[0]->data,
                          wf_tensor_bytes(in[0]), err);
}

static const wf_kernel copy_in_row = {
    .op = "Copy", .domain = WF_DOMAIN_WEFT, .dtypes = WF_TYPES_ALL, .run = copy_in};
static const wf_kernel copy_out_row = {
    .op = "Copy", .domain = WF_DOMAIN_WEFT, .dtypes = WF_TYPES_ALL, .run = copy_out};

bool wf_plan_is_copy(const wf_node *n)
{
    return n->op == &copy_op;
}

static uint32_t side_of_results(const wf_plan *p, const wf_node *n)
{
    for (uint32_t k = 0; k < n->n_out; k++)
        if (n->out[k])
            return p->side_of[n->out[k]->index];
    return WF_SIDE_HOST;
}

uint32_t wf_plan_side_of(const wf_plan *p, const wf_node *n)
{
    uint32_t side = side_of_results(p, n);

    return side == WF_SIDE_HOST && wf_plan_is_copy(n) ? p->side_of[n->in[0]->index] : side;
}

wf_stream *wf_plan_stream(const wf_plan *p, const wf_node *n)
{
    const wf_plan_side *side = &p->sides[wf_plan_side_of(p, n)];

    if (!wf_plan_is_copy(n))
        return side->stream;
    return side_of_results(p, n) == WF_SIDE_HOST ? side->out : side->in;
}

wf_stream *wf_plan_final_stream(const wf_plan *p, const wf_value *v)
{
    uint32_t side = p->side_of[v->index];

    return v->producer && side == WF_SIDE_HOST ? wf_plan_stream(p, v->producer)
                                               : p->sides[side].stream;
}

uint32_t wf_plan_after(const wf_plan *p, const wf_node *n)
{
    uint32_t all = (1u << p->n_sides) - 2; /* but the host */
    const wf_node *from;

    if (!wf_plan_is_copy(n))
        return side_of_results(p, n) == WF_SIDE_HOST ? all : 0;
    from = n->in[0]->producer; /* another device's copy to the host? */
    if (side_of_results(p, n) == WF_SIDE_HOST || !from || !wf_plan_is_copy(from))
        return 0;
    return 1u << wf_plan_side_of(p, from) & ~(1u << side_of_results(p, n));
}

wf_status wf_plan_kernel(const wf_plan *p, const wf_node *n, const wf_kernel **out, wf_err *err)
{
    uint32_t side = side_of_results(p, n);

    if (wf_plan_is_copy(n)) {
        *out = side ? &copy_in_row : &copy_out_row;
        return WF_OK;
    }
    if (side && wf_kernel_find(n, p->sides[side].device, out, NULL) == WF_OK)
        return WF_OK;
    return wf_kernel_find(n, &wf_cpu, out, err); /* a view on a device never runs */
}

/* The pass in hand. */
typedef struct sides {
    wf_plan *p;
    wf_graph *g;
    const wf_plan_options *o;
    wf_value *
        *twins; /* [n_sides][most]: by index of the original, its content there; NULL: not made */
    uint32_t *original; /* [most]: of a twin, its original's index */
    bool *given;        /* [most]: what is there before the run, and views of it on the host */
    wf_node **order;    /* all nodes, as they run from now on */
    wf_node **first;    /* before those: what makes given values, and their copies */
    size_t n_order, n_first, most;
} sides;

static wf_value **twin(const sides *s, const wf_value *v, uint32_t side)
{
    return &s->twins[side * s->most + s->original[v->index]];
}

/* Numbers the value that was added last: the content of v on a side. */
static void number(const sides *s, wf_value *added, const wf_value *v, uint32_t side)
{
    added->index = (uint32_t)(s->g->n_values - 1);
    wf_assert(s->g->n_values <= s->most);
    s->p->side_of[added->index] = (uint8_t)side;
    s->original[added->index] = s->original[v->index];
}

static wf_status add_copy(sides *s, wf_value *v, uint32_t side, wf_value **out, wf_err *err)
{
    wf_node *n;

    WF_TRY(wf_graph_add_value_like(s->g, v->name, out, err));
    number(s, *out, v, side);
    WF_TRY(wf_graph_add_node_like(s->g, &copy_op, v->name, 1, &v, 1, out, &n, err));
    s->order[s->n_order++] = n;
    return infer_copy(s->g, n, err);
}

static wf_status add_constant(sides *s, wf_value *v, uint32_t side, wf_value **out, wf_err *err)
{
    wf_tensor *t = NULL;
    wf_status rc;

    WF_TRY(wf_tensor_share(v->known, &t, err));
    rc = wf_graph_add_constant(s->g, v->name, &t, out, err);
    wf_tensor_free(&t);
    if (rc == WF_OK)
        number(s, *out, v, side);
    return rc;
}

/* The content of v on another side. What is given goes there first of all, in the order in which
 * nodes read it: copies run ahead of the nodes (streams.c). */
static wf_status twin_on(sides *s, wf_value *v, uint32_t side, wf_value **out, wf_err *err)
{
    wf_value **at = twin(s, v, side), *from = v;

    *twin(s, v, s->p->side_of[v->index]) = v;
    if (!*at && wf_value_is_constant(v)) {
        WF_TRY(add_constant(s, v, side, at, err));
    } else if (!*at) {
        if (side != WF_SIDE_HOST && s->p->side_of[v->index] != WF_SIDE_HOST)
            WF_TRY(twin_on(s, v, WF_SIDE_HOST, &from, err));
        WF_TRY(add_copy(s, from, side, at, err));
        if (s->given[from->index])
            s->first[s->n_first++] = s->order[--s->n_order];
    }
    *out = *at;
    return WF_OK;
}

static bool is_view(const wf_node *n)
{
    const wf_kernel *k;

    return wf_kernel_find(n, &wf_cpu, &k, NULL) == WF_OK && k->is_view;
}

/* The side that a node is marked with, or the first device's; the host's where that has no kernel.
 */
static uint32_t choose_side(const sides *s, const wf_node *n)
{
    uint32_t side = s->p->first_side;
    const wf_kernel *k;

    for (uint32_t i = 0; n->device && i < s->p->n_sides; i++)
        if (strcmp(s->p->sides[i].device->name, n->device) == 0)
            side = i;
    return wf_kernel_find(n, s->p->sides[side].device, &k, NULL) == WF_OK ? side : WF_SIDE_HOST;
}

/* The side of a port of value v, which may be one of a variable. */
static uint32_t port_side(const sides *s, const wf_value *v, const char *variable)
{
    for (size_t i = 0; i < s->o->n_resident; i++)
        if (strcmp(s->o->resident[i], v->name) == 0 ||
            (variable && strcmp(s->o->resident[i], variable) == 0))
            return s->p->first_side;
    return WF_SIDE_HOST;
}

static uint32_t output_side(const sides *s, const wf_value *v, const char *variable)
{
    return s->o->outputs_on_host ? WF_SIDE_HOST : port_side(s, v, variable);
}

/* Copies of v for the ports of the plan that hand it out on another side. */
static wf_status copy_to_ports(sides *s, wf_value *v, wf_err *err)
{
    uint32_t from = s->p->side_of[v->index], side = output_side(s, v, NULL);
    wf_value *copy;

    for (size_t i = 0; i < s->g->n_outputs; i++)
        if (s->g->outputs[i] == v && side != from) {
            WF_TRY(add_copy(s, v, side, &copy, err));
            s->g->outputs[i] = copy;
        }
    for (wf_use *u = v->first_use, *next; u; u = next) {
        next = u->next;
        if (!wf_plan_is_sink(u->node))
            continue;
        side = output_side(s, v, wf_node_string(u->node, "variable", ""));
        if (side == from)
            continue;
        WF_TRY(add_copy(s, v, side, &copy, err));
        wf_node_set_in(u->node, 0, copy);
        next = v->first_use; /* the list has changed: from its start again */
    }
    return WF_OK;
}

/* Puts v, which nothing computes, on the side of its port. Those of Pulls are no inputs yet. */
static wf_status place_given(sides *s, wf_value *v, const char *variable, wf_err *err)
{
    if (!wf_value_is_constant(v)) {
        s->p->side_of[v->index] = (uint8_t)port_side(s, v, variable);
        s->given[v->index] = true;
    }
    return copy_to_ports(s, v, err);
}

/* Whether all that it makes is known, and so lies on the host: no run computes it. */
static bool is_known(const wf_node *n)
{
    for (uint32_t k = 0; k < n->n_out; k++)
        if (n->out[k] && !wf_value_is_constant(n->out[k]))
            return false;
    return true;
}

/* A view lies where what it views does, and reads nothing else in a run. What a sink hands out has
 * been brought to the side of its port. */
static wf_status place_node(sides *s, wf_node *n, wf_err *err)
{
    bool view = is_view(n), reads = !view && !wf_plan_is_sink(n);
    uint32_t side = view ? s->p->side_of[n->in[0]->index] : choose_side(s, n);
    bool shows_given = view && side == WF_SIDE_HOST && s->given[n->in[0]->index];
    wf_value *there;

    for (uint32_t k = 0; k < n->n_in && reads; k++)
        if (n->in[k] && s->p->side_of[n->in[k]->index] != side) {
            WF_TRY(twin_on(s, n->in[k], side, &there, err));
            wf_node_set_in(n, k, there);
        }
    if (shows_given || n->op->flags & WF_OP_SOURCE)
        s->first[s->n_first++] = n;
    else
        s->order[s->n_order++] = n;
    for (uint32_t k = 0; k < n->n_out; k++) {
        if (!n->out[k])
            continue;
        s->given[n->out[k]->index] = shows_given;
        if (n->op->flags & WF_OP_SOURCE) {
            WF_TRY(place_given(s, n->out[k], wf_node_string(n, "variable", ""), err));
            continue;
        }
        if (!is_known(n))
            s->p->side_of[n->out[k]->index] = (uint8_t)side;
        WF_TRY(copy_to_ports(s, n->out[k], err));
    }
    return WF_OK;
}

/* A side for each device that is not the host, once. */
static wf_status add_side(wf_plan *p, const wf_device *d, uint32_t *side, wf_err *err)
{
    for (*side = 0; *side < p->n_sides; ++*side)
        if (p->sides[*side].device == d || (d->is_host && *side == WF_SIDE_HOST))
            return WF_OK;
    if (p->n_sides == WF_SIDES)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "more than %d devices", WF_PLAN_DEVICES);
    p->sides[*side].device = d;
    p->n_sides++;
    return wf_plan_side_open(&p->sides[*side], err);
}

static wf_status make_sides(wf_plan *p, const wf_plan_options *o, wf_err *err)
{
    uint32_t side;

    WF_TRY(add_side(p, o->device ? o->device : &wf_cpu, &p->first_side, err));
    for (size_t i = 0; i < o->n_devices; i++)
        WF_TRY(add_side(p, o->devices[i], &side, err));
    return WF_OK;
}

/* A value has a twin on each side at most, and each port a copy. */
static wf_status begin(sides *s, wf_err *err)
{
    size_t n_ports = s->g->n_outputs + s->g->n_nodes, n_sides = s->p->n_sides;

    s->most = n_sides * s->g->n_values + n_ports;
    s->p->side_of = wf_arena_array(s->p->arena, s->most, sizeof *s->p->side_of);
    if (!s->p->side_of)
        return wf_fail_nomem(err, s->most);
    for (size_t i = 0; i < s->g->n_values; i++)
        s->g->values[i]->index = (uint32_t)i;
    if (n_sides == 1)
        return WF_OK;
    s->twins = wf_arena_array(s->p->arena, n_sides * s->most, sizeof *s->twins);
    s->original = wf_arena_array(s->p->arena, s->most, sizeof *s->original);
    s->order = wf_arena_array(s->p->arena, s->most + s->g->n_nodes, sizeof *s->order);
    s->first = wf_arena_array(s->p->arena, s->most + s->g->n_nodes, sizeof *s->first);
    s->given = wf_arena_array(s->p->arena, s->most, sizeof *s->given);
    if (!s->twins || !s->original || !s->order || !s->first || !s->given)
        return wf_fail_nomem(err, n_sides * s->most * sizeof *s->order);
    for (size_t i = 0; i < s->g->n_values; i++)
        s->original[i] = (uint32_t)i;
    return WF_OK;
}

wf_status wf_plan_sides(wf_plan *p, const wf_plan_options *o, wf_err *err)
{
    sides s = {.p = p, .g = p->g, .o = o};
    size_t n = p->g->n_nodes, n_values = p->g->n_values;
    wf_node **nodes;

    WF_TRY(make_sides(p, o, err));
    WF_TRY(begin(&s, err));
    if (p->n_sides == 1)
        return WF_OK;
    nodes = wf_arena_array(p->arena, n, sizeof *nodes);
    if (!nodes)
        return wf_fail_nomem(err, n * sizeof *nodes);
    if (n)
        memcpy(nodes, p->g->nodes, n * sizeof *nodes);
    for (size_t i = 0; i < n_values; i++)
        if (!p->g->values[i]->producer)
            WF_TRY(place_given(&s, p->g->values[i], NULL, err));
    for (size_t i = 0; i < n; i++)
        WF_TRY(place_node(&s, nodes[i], err));
    wf_assert(s.n_first + s.n_order == p->g->n_nodes);
    for (size_t i = 0; i < p->g->n_nodes; i++) {
        p->g->nodes[i] = i < s.n_first ? s.first[i] : s.order[i - s.n_first];
        p->g->nodes[i]->index = (uint32_t)i;
    }
    return WF_OK;
}

/* Adds up the rooms of constants of a side; with memory for them, copies them there. */
static wf_status each_constant(wf_plan *p, uint32_t side, size_t *bytes, wf_buf *to, wf_err *err)
{
    *bytes = 0;
    for (uint32_t i = 0; i < p->n_rooms; i++) {
        wf_room *r = &p->rooms[i];
        char *at;

        if (r->kind != WF_ROOM_CONSTANT || r->side != side)
            continue;
        if (to) {
            at = (char *)to->data + *bytes;
            WF_TRY(wf_stream_copy(p->sides[side].stream, WF_COPY_IN, at, p->tensors[r->head].data,
                                  r->bytes, err));
            wf_room_move(p, i, at);
        }
        *bytes += wf_align_up(r->bytes, WF_BUF_ALIGN);
    }
    return WF_OK;
}

wf_status wf_plan_upload(wf_plan *p, wf_err *err)
{
    for (uint32_t side = 1; side < p->n_sides; side++) {
        wf_plan_side *s = &p->sides[side];
        size_t bytes;

        WF_TRY(each_constant(p, side, &bytes, NULL, err));
        if (bytes == 0)
            continue;
        WF_TRY(wf_plan_reserve(p, s->device, bytes, NULL, &s->constants, err));
        if (p->measure_only)
            continue;
        WF_TRY(each_constant(p, side, &bytes, s->constants, err));
        WF_TRY(wf_stream_wait(s->stream, err));
    }
    return WF_OK;
}
