/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/rules/shapes.c - what moves no element, or moves it back. */
#include "common/compile/rules/rules.h"
#include <string.h>

/* Reshape, Expand, SumToLike... to the shape that it has already. */
static wf_status same_shape(wf_rewrite *r)
{
    if (wf_same_shape(r->n->in[0], r->n->out[0]))
        r->instead = r->n->in[0];
    return WF_OK;
}

/* The dims that Reshape's output has, with at most one unknown as -1; false when more are unknown
 * or one is 0, which Reshape would take for a copy. */
static bool fixed_target(const wf_value *y, int64_t dims[])
{
    int unknown = 0;

    if (y->rank < 0)
        return false;
    for (int32_t i = 0; i < y->rank; i++) {
        dims[i] = y->axes[i].size;
        unknown += dims[i] < 0;
        if (dims[i] == 0)
            return false;
    }
    return unknown <= 1;
}

/* A target computed by Shape, Gather and Concat becomes a constant; what moved the same elements
 * before is passed over. */
static wf_status reshape(wf_rewrite *r)
{
    static const char *const movers[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze"};
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);
    int64_t dims[WF_MAX_RANK];
    wf_node *n = r->n;
    wf_value *target;

    WF_TRY(same_shape(r));
    if (r->instead || !fixed_target(n->out[0], dims))
        return WF_OK;
    if (!wf_value_is_constant(n->in[1])) {
        target = wf_emit_ints(&e, (uint32_t)n->out[0]->rank, dims);
        WF_TRY(wf_emit_end(&e));
        wf_node_set_in(n, 1, target);
        r->changed = true;
    }
    for (size_t i = 0; i < WF_COUNT(movers); i++) {
        const wf_node *before = wf_rewrite_made_by(n, 0, movers[i]);

        if (!before)
            continue;
        /* A 0 in the old target would now copy another input's axis. */
        target = wf_emit_ints(&e, (uint32_t)n->out[0]->rank, dims);
        WF_TRY(wf_emit_end(&e));
        wf_node_set_in(n, 0, before->in[0]);
        wf_node_set_in(n, 1, target);
        r->changed = true;
    }
    return WF_OK;
}

static bool is_single(const wf_value *v)
{
    for (int32_t i = 0; i < v->rank; i++)
        if (v->axes[i].size != 1)
            return false;
    return v->rank >= 0;
}

/* One number spread over the shape that the other operand has already: arithmetic spreads it by
 * itself. The gradient of every mean begins so. */
static wf_status spread(wf_rewrite *r)
{
    wf_node *n = r->n;

    for (uint32_t i = 0; i < 2; i++) {
        const wf_node *expand = wf_rewrite_made_by(n, i, "Expand");

        if (!expand || !is_single(expand->in[0]) || expand->in[0]->rank > n->out[0]->rank ||
            !wf_same_shape(n->in[1 - i], n->out[0]) || wf_rewrite_made_by(n, 1 - i, "Expand"))
            continue;
        wf_node_set_in(n, i, expand->in[0]);
        r->changed = true;
    }
    return WF_OK;
}

/* The shape of what an elementwise node makes is that of an operand: the result itself need not
 * outlive it, nor be there at all. */
static wf_status shape(wf_rewrite *r)
{
    wf_node *n = r->n, *maker = n->in[0]->producer;

    for (uint32_t i = 0; maker && maker->op->flags & WF_OP_ELEMENTWISE && i < maker->n_in; i++)
        if (wf_node_has_in(maker, i) && wf_same_shape(maker->in[i], n->in[0])) {
            wf_node_set_in(n, 0, maker->in[i]);
            r->changed = true;
            break;
        }
    return WF_OK;
}

/* Concat of one. */
static wf_status alone(wf_rewrite *r)
{
    if (r->n->n_in == 1)
        r->instead = r->n->in[0];
    return WF_OK;
}

/* Slice of all: the shape says it, unless it walks backwards. */
static wf_status whole(wf_rewrite *r)
{
    wf_elem steps[WF_MAX_CARRIED];
    uint32_t n = 0;

    if (wf_node_has_in(r->n, 4) && !wf_value_elems(r->n->in[4], steps, &n))
        return WF_OK;
    for (uint32_t i = 0; i < n; i++)
        if (!steps[i].is_known || steps[i].value < 0)
            return WF_OK;
    return same_shape(r);
}

/* The axes of Squeeze or Unsqueeze, when they are one and the same constant. */
static bool same_axes(const wf_node *a, const wf_node *b)
{
    wf_elem x[WF_MAX_CARRIED], y[WF_MAX_CARRIED];
    uint32_t n, m;

    if (!wf_node_has_in(a, 1) || !wf_node_has_in(b, 1) || !wf_value_elems(a->in[1], x, &n) ||
        !wf_value_elems(b->in[1], y, &m) || n != m)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!x[i].is_known || !y[i].is_known || x[i].value != y[i].value)
            return false;
    return true;
}

/* An axis of 1 that comes and goes: negative axes count in both from the same end of the same
 * rank. */
static wf_status back(wf_rewrite *r)
{
    const char *other = wf_node_is(r->n, WF_DOMAIN_ONNX, "Squeeze") ? "Unsqueeze" : "Squeeze";
    const wf_node *before = wf_rewrite_made_by(r->n, 0, other);

    if (before && same_axes(r->n, before) && before->in[0]->rank >= 0 &&
        before->in[0]->rank == r->n->out[0]->rank &&
        (!strcmp(other, "Unsqueeze") || wf_same_shape(before->in[0], r->n->out[0])))
        r->instead = before->in[0];
    return WF_OK;
}

const wf_rewrite_rule wf_rules_shapes[] = {
    {WF_DOMAIN_ONNX, "Reshape", reshape},
    {WF_DOMAIN_ONNX, "Flatten", same_shape},
    {WF_DOMAIN_ONNX, "Expand", same_shape},
    {WF_DOMAIN_ONNX, "Tile", same_shape},
    {WF_DOMAIN_ONNX, "Concat", alone},
    {WF_DOMAIN_ONNX, "Slice", whole},
    {WF_DOMAIN_ONNX, "Shape", shape},
    {WF_DOMAIN_ONNX, "Squeeze", back},
    {WF_DOMAIN_ONNX, "Unsqueeze", back},
    {WF_DOMAIN_WEFT, "SumToLike", same_shape},
    {WF_DOMAIN_ONNX, "Add", spread},
    {WF_DOMAIN_ONNX, "Sub", spread},
    {WF_DOMAIN_ONNX, "Mul", spread},
    {WF_DOMAIN_ONNX, "Div", spread},
    {0},
};
