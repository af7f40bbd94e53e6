/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/elementwise/activation.c - Relu, ReluGrad, Sigmoid, SigmoidGrad, Tanh and
 * TanhGrad, whose gradients need y alone, so that x may be overwritten; and PRelu. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#define ACTIVATION(id, name, since)                                                                \
    const wf_op wf_op_##id = WF_ELEMENTWISE(WF_DOMAIN_ONNX, name, since, 1, wf_infer_like_float,   \
                                            WF_GRAD_NODE(name "Grad", "d0 y0"));                   \
    const wf_op wf_op_##id##_grad =                                                                \
        WF_ELEMENTWISE(WF_DOMAIN_WEFT, name "Grad", 1, 2, wf_infer_grad_like,                      \
                       .means = "(dy, y) -> dx; y is the forward output");

ACTIVATION(relu, "Relu", 14)
ACTIVATION(sigmoid, "Sigmoid", 13)
ACTIVATION(tanh, "Tanh", 13)

/* PRelu: y = x, or slope x where x is below 0; the slope broadcasts to x. */

/* The result has the shape of x: a slope that is larger is a mistake. */
static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0], *slope = n->in[1];
    char a[WF_VALUE_STR], b[WF_VALUE_STR];
    bool fits = true;

    WF_TRY(wf_infer_arithmetic(g, n, NULL, err));
    if (x->rank < 0 || slope->rank < 0)
        return WF_OK;
    fits = slope->rank <= x->rank;
    for (int32_t i = 0; fits && i < slope->rank; i++) {
        const wf_axis *axis = &x->axes[x->rank - slope->rank + i];

        fits = slope->axes[i].size == 1 || !wf_axes_clash(&slope->axes[i], axis);
    }
    if (!fits)
        return wf_fail(err, WF_SHAPE, NULL,
                       "X is %s and the slope %s, which must broadcast to the shape of X",
                       wf_value_str(x, a, sizeof a), wf_value_str(slope, b, sizeof b));
    wf_out_like(n, 0, x->dtype, x);
    return WF_OK;
}

/* Chosen and not multiplied by 0: an x or a dy that is infinite stays out of the other's way. */
static wf_status grad_p_relu(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *x = n->in[0], *slope = n->in[1], *dy = wf_grads_upstream(g, n, 0);
    wf_value *zero = wf_emit_scalar(e, x->dtype, 0);
    wf_value *above = wf_emit_binary(e, "Greater", x, zero);

    (void)err;
    if (wf_grads_wanted(g, n, 0))
        WF_TRY(wf_grads_add(g, n, 0, wf_emit_where(e, above, dy, wf_emit_mul(e, dy, slope))));
    if (wf_grads_wanted(g, n, 1)) {
        wf_value *each = wf_emit_where(e, above, zero, wf_emit_mul(e, dy, x));

        WF_TRY(wf_grads_add(g, n, 1, wf_emit_sum_to(e, each, slope)));
    }
    return wf_emit_end(e);
}

const wf_op wf_op_p_relu =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "PRelu", 16, 2, infer, .grad = grad_p_relu);
