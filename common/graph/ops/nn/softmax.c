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

static const wf_attr_row attrs[] = {{"axis", WF_ATTR_INT, false}, {0}};

#define ROW(id, name)                                                                              \
    const wf_op wf_op_##id = WF_FOLDABLE(WF_DOMAIN_ONNX, name, 13, 1, 1, infer, .attrs = attrs,    \
                                         WF_GRAD_NODE(name "Grad", "d0 y0"));                      \
    const wf_op wf_op_##id##_grad =                                                                \
        WF_FOLDABLE(WF_DOMAIN_WEFT, name "Grad", 1, 2, 2, wf_infer_grad_like, .attrs = attrs,      \
                    .means = "(dy, y) -> dx; attr axis = -1; y is the forward output");

ROW(log_softmax, "LogSoftmax")
ROW(softmax, "Softmax")
