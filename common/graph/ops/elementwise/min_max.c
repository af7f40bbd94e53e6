/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/elementwise/min_max.c - Clip, Max and Min. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

/* Inputs that are equally extreme share the gradient, as in PyTorch. */
static wf_status grad_extreme(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *y = n->out[0], *share, *ties = NULL;

    (void)err;
    if (n->n_in == 1)
        return wf_grads_add(g, n, 0, wf_grads_upstream(g, n, 0));
    for (uint32_t i = 0; i < n->n_in; i++) {
        wf_value *hit = wf_emit_cast(e, wf_emit_binary(e, "Equal", n->in[i], y), y->dtype);

        ties = ties ? wf_emit_add(e, ties, hit) : hit;
    }
    share = wf_emit_div(e, wf_grads_upstream(g, n, 0), ties);
    for (uint32_t i = 0; i < n->n_in; i++) {
        wf_value *hit, *zero;

        if (!wf_grads_wanted(g, n, i))
            continue;
        hit = wf_emit_binary(e, "Equal", n->in[i], y);
        zero = wf_emit_scalar(e, y->dtype, 0);
        WF_TRY(
            wf_grads_add(g, n, i, wf_emit_sum_to(e, wf_emit_where(e, hit, share, zero), n->in[i])));
    }
    return wf_emit_end(e);
}

/* Of any number of inputs, broadcast. */
#define EXTREME(id, name_)                                                                         \
    static wf_status infer_##id(wf_graph *g, wf_node *n, wf_err *err)                              \
    {                                                                                              \
        return wf_infer_variadic(g, n, wf_elem_##id, err);                                         \
    }                                                                                              \
    const wf_op wf_op_##id =                                                                       \
        WF_OPERATION(WF_DOMAIN_ONNX, name_, 13, 1, WF_ANY_NUMBER, 1, 1,                            \
                     WF_OP_ELEMENTWISE | WF_OP_FOLDABLE, infer_##id, .grad = grad_extreme);

EXTREME(max, "Max")
EXTREME(min, "Min")

/* Clip: min(max(x, low), high); either bound, a scalar, may be absent. */

static wf_status infer_clip(wf_graph *g, wf_node *n, wf_err *err)
{
    for (uint32_t i = 1; i < n->n_in; i++)
        if (n->in[i])
            WF_TRY(wf_need_same_dtype(n, 0, i, err));
    return wf_infer_like_number(g, n, err);
}

/* dy where x is within the bounds, on them included, as PyTorch's clamp has it. */
static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *x = n->in[0], *dx = wf_grads_upstream(g, n, 0);
    wf_value *zero = wf_emit_scalar(e, x->dtype, 0);

    (void)err;
    if (wf_node_has_in(n, 1))
        dx = wf_emit_where(e, wf_emit_binary(e, "Less", x, n->in[1]), zero, dx);
    if (wf_node_has_in(n, 2))
        dx = wf_emit_where(e, wf_emit_binary(e, "Greater", x, n->in[2]), zero, dx);
    return wf_grads_add(g, n, 0, dx);
}

const wf_op wf_op_clip =
    WF_OPERATION(WF_DOMAIN_ONNX, "Clip", 13, 1, 3, 1, 1, WF_OP_ELEMENTWISE | WF_OP_FOLDABLE,
                 infer_clip, .no_grad_in = 1u << 1 | 1u << 2, .grad = grad);
