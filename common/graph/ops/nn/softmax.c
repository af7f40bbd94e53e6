/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/nn/softmax.c - LogSoftmax, LogSoftmaxGrad, Softmax and SoftmaxGrad, along one
 * axis. Their gradients need y alone: dx = y (dy - sum(dy y)), and dy - exp(y) sum(dy). */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    uint32_t axis;

    if (n->in[0]->rank >= 0)
        WF_TRY(wf_axis_number(wf_node_int(n, "axis", -1), (uint32_t)n->in[0]->rank, &axis, err));
    return wf_infer_like_float(g, n, err);
}

static wf_status pass_back(wf_grads *g, const wf_node *n, const char *op)
{
    wf_value *in[] = {wf_grads_upstream(g, n, 0), n->out[0]};
    wf_attr axis = wf_attr_int("axis", wf_node_int(n, "axis", -1));

    return wf_grads_add(g, n, 0, wf_emit_op(wf_grads_emit(g), op, 2, in, 1, &axis));
}

static const wf_attr_row attrs[] = {{"axis", WF_ATTR_INT, false}, {0}};

#define ROW(id, name)                                                                              \
    static wf_status grad_##id(wf_grads *g, const wf_node *n, wf_err *err)                         \
    {                                                                                              \
        (void)err;                                                                                 \
        return pass_back(g, n, name "Grad");                                                       \
    }                                                                                              \
    const wf_op wf_op_##id =                                                                       \
        WF_FOLDABLE(WF_DOMAIN_ONNX, name, 13, 1, 1, infer, .attrs = attrs, .grad = grad_##id);     \
    const wf_op wf_op_##id##_grad =                                                                \
        WF_FOLDABLE(WF_DOMAIN_WEFT, name "Grad", 1, 2, 2, wf_infer_grad_like, .attrs = attrs,      \
                    .means = "(dy, y) -> dx; attr axis = -1; y is the forward output");

ROW(log_softmax, "LogSoftmax")
ROW(softmax, "Softmax")
