/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/elementwise/activation.c - Relu, ReluGrad, Sigmoid, SigmoidGrad, Tanh and
 * TanhGrad. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

/* Relu: y = max(x, 0). Its gradient needs y alone, so that x may be overwritten. */

static wf_status grad_relu(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *dy = wf_grads_upstream(g, n, 0);

    (void)err;
    return wf_grads_add(g, n, 0, wf_emit_binary(e, "ReluGrad", dy, n->out[0]));
}

const wf_op wf_op_relu =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Relu", 14, 1, wf_infer_like_float, .grad = grad_relu);

/* ai.weft ReluGrad: dx = y > 0 ? dy : 0. */

const wf_op wf_op_relu_grad = WF_ELEMENTWISE(WF_DOMAIN_WEFT, "ReluGrad", 1, 2, wf_infer_grad_like,
                                             .means = "(dy, y) -> dx; y is the forward output");

/* Sigmoid: y = 1 / (1 + e^-x). */

static wf_status grad_sigmoid(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *dy = wf_grads_upstream(g, n, 0);

    (void)err;
    return wf_grads_add(g, n, 0, wf_emit_binary(e, "SigmoidGrad", dy, n->out[0]));
}

const wf_op wf_op_sigmoid =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Sigmoid", 13, 1, wf_infer_like_float, .grad = grad_sigmoid);

/* ai.weft SigmoidGrad: dx = dy y (1 - y). */

const wf_op wf_op_sigmoid_grad =
    WF_ELEMENTWISE(WF_DOMAIN_WEFT, "SigmoidGrad", 1, 2, wf_infer_grad_like,
                   .means = "(dy, y) -> dx; y is the forward output");

/* Tanh: hyperbolic tangent. */

static wf_status grad_tanh(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *dy = wf_grads_upstream(g, n, 0);

    (void)err;
    return wf_grads_add(g, n, 0, wf_emit_binary(e, "TanhGrad", dy, n->out[0]));
}

const wf_op wf_op_tanh =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Tanh", 13, 1, wf_infer_like_float, .grad = grad_tanh);

/* ai.weft TanhGrad: dx = dy (1 - y^2). */

const wf_op wf_op_tanh_grad = WF_ELEMENTWISE(WF_DOMAIN_WEFT, "TanhGrad", 1, 2, wf_infer_grad_like,
                                             .means = "(dy, y) -> dx; y is the forward output");
