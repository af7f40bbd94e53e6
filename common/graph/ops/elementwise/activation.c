/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/elementwise/activation.c - Relu, ReluGrad, Sigmoid, SigmoidGrad, Tanh and
 * TanhGrad. Their gradients need y alone, so that x may be overwritten. */
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
