/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/shape/expand.c - Expand: broadcasts input 0 to the shape in input 1; both ways,
 * as ONNX has it: a 1 in the shape leaves the input's axis. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    wf_value shape = {.rank = 0};
    wf_axis axes[WF_MAX_RANK];
    char text[WF_VALUE_STR];
    uint32_t count, rank = 0;
    bool known;

    wf_out_unknown(n, 0, x->dtype);
    WF_TRY(wf_shape_input(n, 1, &known, &count, shape.axes, err));
    if (x->rank < 0 || !known)
        return WF_OK;
    shape.rank = (int32_t)count;
    WF_TRY(wf_axes_broadcast(axes, &rank, x, err));
    WF_TRY(wf_err_wrap(err, wf_axes_broadcast(axes, &rank, &shape, err), "the input is %s",
                       wf_value_str(x, text, sizeof text)));
    wf_out_axes(n, 0, x->dtype, rank, axes);
    /* As Identity where nothing grows: Expand of a shape vector to its own length. */
    return rank == (uint32_t)x->rank && wf_same_shape(n->out[0], x) ? wf_carry_input(g, n, err)
                                                                    : WF_OK;
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    (void)err;
    return wf_grads_add(g, n, 0,
                        wf_emit_sum_to(wf_grads_emit(g), wf_grads_upstream(g, n, 0), n->in[0]));
}

const wf_op wf_op_expand =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "Expand", 13, 2, 2, infer, .no_grad_in = 1u << 1, .grad = grad);
