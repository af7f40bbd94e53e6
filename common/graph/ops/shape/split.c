/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/shape/split.c - Split along attr axis: into parts of the sizes in input 1; else
 * into attr num_outputs parts (as many as the node has outputs when that is absent too) of one
 * size, of which the last may be smaller. */
#include "common/base/size.h"
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

/* The sizes given by input 1. */
static wf_status given_sizes(const wf_node *n, const wf_axis *whole, uint32_t axis, wf_axis part[],
                             wf_err *err)
{
    wf_elem sizes[WF_MAX_CARRIED];
    int64_t sum = 0;
    uint32_t count;

    for (uint32_t i = 0; i < n->n_out; i++)
        part[i] = wf_axis_unknown(whole->bound);
    WF_TRY(wf_need_int(n, 1, "split", err));
    if (!wf_value_elems(n->in[1], sizes, &count))
        return WF_OK;
    if (count < n->n_out)
        return wf_fail(err, WF_SHAPE, NULL, "%u sizes for %u outputs", count, n->n_out);
    for (uint32_t i = 0; i < count; i++) {
        if (sizes[i].is_known && sizes[i].value < 0)
            return wf_fail(err, WF_SHAPE, NULL, "part %u has the size %lld", i,
                           (long long)sizes[i].value);
        if (i < n->n_out)
            part[i] = wf_axis_of_elem(&sizes[i]);
        if (!sizes[i].is_known || __builtin_add_overflow(sum, sizes[i].value, &sum))
            return WF_OK;
    }
    if (whole->size >= 0 && sum != whole->size)
        return wf_fail(err, WF_SHAPE, NULL, "parts of %lld in all, and axis %u has %lld",
                       (long long)sum, axis, (long long)whole->size);
    return WF_OK;
}

/* Equal parts, rounded up, and what is left. */
static wf_status equal_sizes(const wf_node *n, const wf_axis *whole, wf_axis part[], wf_err *err)
{
    int64_t parts = wf_node_int(n, "num_outputs", n->n_out), size, left;

    if (parts < n->n_out)
        return wf_fail(err, WF_SHAPE, NULL, "num_outputs is %lld, and there are %u outputs",
                       (long long)parts, n->n_out);
    size = whole->size < 0 ? 0 : whole->size / parts + (whole->size % parts != 0);
    left = whole->size;
    for (uint32_t i = 0; i < n->n_out; i++) {
        part[i] = whole->size < 0 ? wf_axis_unknown(whole->bound)
                                  : wf_axis_of(WF_MAX(WF_MIN(size, left), (int64_t)0));
        left -= size;
    }
    return WF_OK;
}

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    wf_axis axes[WF_MAX_RANK], *part = wf_arena_array(g->arena, n->n_out, sizeof *part);
    uint32_t axis;

    if (!part)
        return wf_fail_nomem(err, n->n_out * sizeof *part);
    for (uint32_t i = 0; i < n->n_out; i++)
        wf_out_unknown(n, i, x->dtype);
    if (x->rank < 0)
        return WF_OK;
    WF_TRY(wf_axis_number(wf_node_int(n, "axis", 0), (uint32_t)x->rank, &axis, err));
    if (wf_node_has_in(n, 1))
        WF_TRY(given_sizes(n, &x->axes[axis], axis, part, err));
    else
        WF_TRY(equal_sizes(n, &x->axes[axis], part, err));
    for (uint32_t i = 0; i < n->n_out; i++) {
        for (int32_t k = 0; k < x->rank; k++)
            axes[k] = (uint32_t)k == axis ? part[i] : x->axes[k];
        wf_out_axes(n, i, x->dtype, (uint32_t)x->rank, axes);
    }
    return WF_OK;
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_attr axis = wf_attr_int("axis", wf_node_int(n, "axis", 0));
    wf_value **parts = wf_arena_array(e->g->arena, n->n_out, sizeof *parts);

    if (!parts)
        return wf_fail_nomem(err, n->n_out * sizeof *parts);
    for (uint32_t i = 0; i < n->n_out; i++) {
        wf_value *y = wf_grads_output(g, n, i);

        parts[i] = wf_grads_upstream(g, n, i);
        if (!parts[i] && y)
            parts[i] = wf_emit_expand_like(e, wf_emit_scalar(e, y->dtype, 0), y);
    }
    return wf_grads_add(g, n, 0, wf_emit_op(e, "Concat", n->n_out, parts, 1, &axis));
}

/* Before opset 13 the sizes of parts were an attribute. Before 18 the number of equal parts was
 * that of the outputs; since then it is an attribute, which other readers of the file insist on. */
static wf_status upgrade(wf_graph *g, wf_node *n, int64_t from, wf_err *err)
{
    wf_attr parts = wf_attr_int("num_outputs", n->n_out);

    if (from < 13)
        WF_TRY(wf_upgrade_list(g, n, "split", err));
    if (from >= 18 || (n->n_in > 1 && n->in[1]))
        return WF_OK;
    return wf_node_set_attr(g, n, &parts, err);
}

static const wf_attr_row attrs[] = {
    {"axis", WF_ATTR_INT, false}, {"num_outputs", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_split =
    WF_OPERATION(WF_DOMAIN_ONNX, "Split", 18, 1, 2, 1, WF_ANY_NUMBER, WF_OP_FOLDABLE, infer,
                 .note = "every part has a name", .no_grad_in = 1u << 1, .attrs = attrs,
                 .grad = grad, .upgrade = upgrade);
