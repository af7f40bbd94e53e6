/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/shape/view.c - Flatten, Identity, Squeeze and Unsqueeze. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

/* Flatten: the axes before attr axis become one, and the rest another. */

static wf_status infer_flatten(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    int64_t axis = wf_node_int(n, "axis", 1);
    wf_axis axes[2] = {wf_axis_of(1), wf_axis_of(1)};

    (void)g;
    wf_out_unknown(n, 0, x->dtype);
    if (x->rank < 0)
        return WF_OK;
    if (axis < -x->rank || axis > x->rank)
        return wf_fail(err, WF_SHAPE, NULL, "axis %lld is not in a tensor of %d axes",
                       (long long)axis, x->rank);
    if (axis < 0)
        axis += x->rank;
    for (int32_t i = 0; i < x->rank; i++)
        axes[i >= axis] = wf_axis_mul(&axes[i >= axis], &x->axes[i]);
    wf_out_axes(n, 0, x->dtype, 2, axes);
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"axis", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_flatten =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "Flatten", 13, 1, 1, infer_flatten, .keeps_order = true,
                .attrs = attrs, .grad = wf_grad_reshape_back);

/* Identity: y = x, of any dtype. */

static wf_status infer_identity(wf_graph *g, wf_node *n, wf_err *err)
{
    WF_TRY(wf_infer_like_input(g, n, err));
    return wf_carry_input(g, n, err);
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_value *dy = wf_grads_upstream(g, n, 0);

    (void)err;
    return wf_grads_add(g, n, 0, dy);
}

const wf_op wf_op_identity =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Identity", 16, 1, infer_identity, .grad = grad);

/* Squeeze: drops axes of size 1; all of them when none is named. */

static wf_status infer_squeeze(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    char text[WF_VALUE_STR];
    wf_axis axes[WF_MAX_RANK];
    uint32_t mask, rank = 0;
    int64_t n_axes;
    bool known;

    wf_out_unknown(n, 0, x->dtype);
    if (x->rank < 0)
        return WF_OK;
    WF_TRY(wf_axes_input(n, 1, (uint32_t)x->rank, &known, &mask, &n_axes, err));
    if (!known)
        return WF_OK;
    for (int32_t i = 0; i < x->rank; i++) {
        bool named = mask >> i & 1u;

        if (!wf_node_has_in(n, 1) && x->axes[i].size < 0)
            return WF_OK; /* it may be 1 */
        if (named && x->axes[i].size >= 0 && x->axes[i].size != 1)
            return wf_fail(err, WF_SHAPE, NULL, "axis %d of %s is not 1", i,
                           wf_value_str(x, text, sizeof text));
        if (!named && (wf_node_has_in(n, 1) || x->axes[i].size != 1))
            axes[rank++] = x->axes[i];
    }
    wf_out_axes(n, 0, x->dtype, rank, axes);
    return wf_carry_input(g, n, err);
}

const wf_op wf_op_squeeze =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "Squeeze", 13, 1, 2, infer_squeeze, .keeps_order = true,
                .no_grad_in = 1u << 1, .grad = wf_grad_reshape_back, .upgrade = wf_upgrade_axes);

/* Unsqueeze: axes of size 1 at places counted in the result. */

static wf_status infer_unsqueeze(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0], *where = n->in[1];
    wf_axis axes[WF_MAX_RANK];
    wf_elem elems[WF_MAX_CARRIED];
    uint32_t count, mask, rank, from = 0;
    int64_t n_axes;
    bool known;

    wf_out_unknown(n, 0, x->dtype);
    if (x->rank < 0 || !wf_value_elems(where, elems, &count))
        return WF_OK;
    rank = (uint32_t)x->rank + count;
    WF_TRY(wf_need_rank(rank, err));
    WF_TRY(wf_axes_input(n, 1, rank, &known, &mask, &n_axes, err));
    if (!known)
        return WF_OK;
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = mask >> i & 1u ? wf_axis_of(1) : x->axes[from++];
    wf_out_axes(n, 0, x->dtype, rank, axes);
    return wf_carry_input(g, n, err);
}

const wf_op wf_op_unsqueeze =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "Unsqueeze", 13, 2, 2, infer_unsqueeze, .keeps_order = true,
                .no_grad_in = 1u << 1, .grad = wf_grad_reshape_back);
