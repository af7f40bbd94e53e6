/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/nn/softmax.c - LogSoftmax, LogSoftmaxGrad, Softmax and SoftmaxGrad, along one
 * axis. Their gradients need y alone: dx = y (dy - sum(dy y)), and dy - exp(y) sum(dy). */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static const wf_attr_row attrs[] = {{"axis", WF_ATTR_INT, false}, {0}};

#define ROW(id, name)                                                                              \
    const wf_op wf_op_##id = WF_FOLDABLE(WF_DOMAIN_ONNX, name, 13, 1, 1, wf_infer_along_axis,      \
                                         .attrs = attrs, WF_GRAD_NODE(name "Grad", "d0 y0"));      \
    const wf_op wf_op_##id##_grad =                                                                \
        WF_FOLDABLE(WF_DOMAIN_WEFT, name "Grad", 1, 2, 2, wf_infer_grad_like, .attrs = attrs,      \
                    .means = "(dy, y) -> dx; attr axis = -1; y is the forward output");

ROW(log_softmax, "LogSoftmax")
ROW(softmax, "Softmax")
