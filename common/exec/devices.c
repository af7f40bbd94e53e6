/* SPDX-License-Identifier: Apache-2.0 */
/* common/exec/devices.c - which side each node of a plan runs on, and the copies between the sides.
 *
 * A plan for a device other than the host has two sides: the device, and the host for what is fed
 * and fetched and for operations without a kernel on the device. A value lies on the side of the
 * node that makes it; what is given (inputs, variables, constants) lies on the host. Where a node
 * reads a value of the other side, a Copy node makes its twin there; a constant's twin is a
 * constant that is copied once, when the plan is made. Each port of the plan gets a Copy of its own
 * right behind the node that makes its value, so that gradients leave as early as they can.
 *
 * A plan for the host has one side, and its graph stays as it is.
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

bool wf_plan_makes_on_device(const wf_plan *p, const wf_node *n)
{
    for (uint32_t k = 0; k < n->n_out; k++)
        if (n->out[k])
            return p->on_device[n->out[k]->index];
    return false;
}

wf_status wf_plan_kernel(const wf_plan *p, const wf_node *n, const wf_kernel **out, wf_err *err)
{
    bool on_device = wf_plan_makes_on_device(p, n);

    if (wf_plan_is_copy(n)) {
        *out = on_device ? &copy_in_row : &copy_out_row;
        return WF_OK;
    }
    if (on_device && wf_kernel_find(n, p->device, out, NULL) == WF_OK)
        return WF_OK;
    return wf_kernel_find(n, &wf_cpu, out, err); /* a view on the device never runs */
}

/* The pass in hand. */
typedef struct sides {
    wf_plan *p;
    wf_graph *g;
    wf_value **twins; /* by index: the same content on the other side; NULL: not made */
    wf_node **order;  /* all nodes, as they run from now on */
    size_t n_order, most;
} sides;

/* Numbers the value that was added last. */
static void number(const sides *s, wf_value *v, bool on_device)
{
    v->index = (uint32_t)(s->g->n_values - 1);
    wf_assert(s->g->n_values <= s->most);
    s->p->on_device[v->index] = on_device;
}

static wf_status add_copy(sides *s, wf_value *v, bool to_device, wf_value **out, wf_err *err)
{
    wf_node *n;

    WF_TRY(wf_graph_add_value_like(s->g, v->name, out, err));
    number(s, *out, to_device);
    WF_TRY(wf_graph_add_node_like(s->g, &copy_op, v->name, 1, &v, 1, out, &n, err));
    s->order[s->n_order++] = n;
    return infer_copy(s->g, n, err);
}

/* The content of v on the side where v is not. */
static wf_status twin_of(sides *s, wf_value *v, wf_value **out, wf_err *err)
{
    wf_tensor *t = NULL;
    wf_status rc;

    *out = s->twins[v->index];
    if (*out)
        return WF_OK;
    if (wf_value_is_constant(v)) {
        WF_TRY(wf_tensor_share(v->known, &t, err));
        rc = wf_graph_add_constant(s->g, v->name, &t, out, err);
        wf_tensor_free(&t);
        WF_TRY(rc);
        number(s, *out, !s->p->on_device[v->index]);
    } else {
        WF_TRY(add_copy(s, v, !s->p->on_device[v->index], out, err));
    }
    s->twins[v->index] = *out;
    s->twins[(*out)->index] = v;
    return WF_OK;
}

static bool is_view(const wf_node *n)
{
    const wf_kernel *k;

    return wf_kernel_find(n, &wf_cpu, &k, NULL) == WF_OK && k->is_view;
}

static bool has_kernel(const sides *s, const wf_node *n)
{
    const wf_kernel *k;

    return wf_kernel_find(n, s->p->device, &k, NULL) == WF_OK;
}

/* Copies of v for the ports of the plan that hand it out. */
static wf_status copy_to_ports(sides *s, wf_value *v, wf_err *err)
{
    wf_value *copy;

    for (size_t i = 0; i < s->g->n_outputs; i++)
        if (s->g->outputs[i] == v) {
            WF_TRY(add_copy(s, v, false, &copy, err));
            s->g->outputs[i] = copy;
        }
    for (wf_use *u = v->first_use, *next; u; u = next) {
        next = u->next;
        if (!wf_plan_is_sink(u->node))
            continue;
        WF_TRY(add_copy(s, v, false, &copy, err));
        wf_node_set_in(u->node, 0, copy);
        next = v->first_use; /* the list has changed: from its start again */
    }
    return WF_OK;
}

/* Whether all that it makes is known, and so lies on the host: no run computes it. */
static bool is_known(const wf_node *n)
{
    for (uint32_t k = 0; k < n->n_out; k++)
        if (n->out[k] && !wf_value_is_constant(n->out[k]))
            return false;
    return true;
}

/* A view lies where what it views does, and reads nothing else in a run. */
static wf_status place_node(sides *s, wf_node *n, wf_err *err)
{
    bool view = is_view(n);
    bool on_device = view ? s->p->on_device[n->in[0]->index] : has_kernel(s, n);
    wf_value *twin;

    for (uint32_t k = 0; k < n->n_in && !view; k++)
        if (n->in[k] && s->p->on_device[n->in[k]->index] != on_device) {
            WF_TRY(twin_of(s, n->in[k], &twin, err));
            wf_node_set_in(n, k, twin);
        }
    s->order[s->n_order++] = n;
    for (uint32_t k = 0; k < n->n_out && on_device && !is_known(n); k++)
        if (n->out[k]) {
            s->p->on_device[n->out[k]->index] = true;
            WF_TRY(copy_to_ports(s, n->out[k], err));
        }
    return WF_OK;
}

/* Values have two twins at most, and ports a copy each. */
static wf_status begin(sides *s, wf_err *err)
{
    size_t n_ports = s->g->n_outputs + s->g->n_nodes;

    s->most = 2 * s->g->n_values + n_ports;
    s->p->on_device = wf_arena_array(s->p->arena, s->most, sizeof *s->p->on_device);
    if (!s->p->on_device)
        return wf_fail_nomem(err, s->most);
    for (size_t i = 0; i < s->g->n_values; i++)
        s->g->values[i]->index = (uint32_t)i;
    if (s->p->device->is_host)
        return WF_OK;
    s->twins = wf_arena_array(s->p->arena, s->most, sizeof *s->twins);
    s->order = wf_arena_array(s->p->arena, s->most + s->g->n_nodes, sizeof *s->order);
    if (!s->twins || !s->order)
        return wf_fail_nomem(err, s->most * sizeof *s->order);
    return WF_OK;
}

wf_status wf_plan_sides(wf_plan *p, wf_err *err)
{
    sides s = {.p = p, .g = p->g};
    size_t n = p->g->n_nodes;
    wf_node **nodes;

    WF_TRY(begin(&s, err));
    if (p->device->is_host)
        return WF_OK;
    nodes = wf_arena_array(p->arena, n, sizeof *nodes);
    if (!nodes)
        return wf_fail_nomem(err, n * sizeof *nodes);
    if (n)
        memcpy(nodes, p->g->nodes, n * sizeof *nodes);
    for (size_t i = 0; i < n; i++)
        WF_TRY(place_node(&s, nodes[i], err));
    wf_assert(s.n_order == p->g->n_nodes);
    for (size_t i = 0; i < s.n_order; i++) {
        p->g->nodes[i] = s.order[i];
        p->g->nodes[i]->index = (uint32_t)i;
    }
    return WF_OK;
}

/* Calls for each room of a constant on the device, with the offset that it has in their buffer. */
static wf_status each_constant(wf_plan *p, size_t *bytes, wf_buf *to, wf_err *err)
{
    *bytes = 0;
    for (uint32_t i = 0; i < p->n_rooms; i++) {
        wf_room *r = &p->rooms[i];
        char *at;

        if (r->kind != WF_ROOM_CONSTANT || !r->on_device)
            continue;
        if (to) {
            at = (char *)to->data + *bytes;
            WF_TRY(
                wf_stream_copy(p->stream, WF_COPY_IN, at, p->tensors[r->head].data, r->bytes, err));
            wf_room_move(p, i, at);
        }
        *bytes += wf_align_up(r->bytes, WF_BUF_ALIGN);
    }
    return WF_OK;
}

wf_status wf_plan_upload(wf_plan *p, wf_err *err)
{
    size_t bytes;

    WF_TRY(each_constant(p, &bytes, NULL, err));
    if (bytes == 0)
        return WF_OK;
    WF_TRY(wf_plan_reserve(p, p->device, bytes, NULL, &p->constants, err));
    if (p->measure_only)
        return WF_OK;
    WF_TRY(each_constant(p, &bytes, p->constants, err));
    return wf_stream_wait(p->stream, err);
}
