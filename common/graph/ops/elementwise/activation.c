/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/elementwise/activation.c - Relu, ReluGrad, Sigmoid, SigmoidGrad, Tanh and
 * TanhGrad. Their gradients need y alone, so that x may be overwritten. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#define ACTIVATION(id, name, since)                                                                \
    static wf_status grad_##id(wf_grads *g, const wf_node *n, wf_err *err)                         \
    {                                                                                              \
        wf_value *dy = wf_grads_upstream(g, n, 0);                                                 \
                                                                                                   \
        (void)err;                                                                                 \
        return wf_grads_add(g, n, 0,                                                               \
                            wf_emit_binary(wf_grads_emit(g), name "Grad", dy, n->out[0]));         \
    }                                                                                              \
    const wf_op wf_op_##id =                                                                       \
        WF_ELEMENTWISE(WF_DOMAIN_ONNX, name, since, 1, wf_infer_like_float, .grad = grad_##id);    \
    const wf_op wf_op_##id##_grad =                                                                \
        WF_ELEMENTWISE(WF_DOMAIN_WEFT, name "Grad", 1, 2, wf_infer_grad_like,                      \
                       .means = "(dy, y) -> dx; y is the forward output");

ACTIVATION(relu, "Relu", 14)
ACTIVATION(sigmoid, "Sigmoid", 13)
ACTIVATION(tanh, "Tanh", 13)
