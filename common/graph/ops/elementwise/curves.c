/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/elementwise/curves.c - Celu, CeluGrad, Elu, EluGrad, Gelu, GeluGrad,
 * HardSigmoid, HardSigmoidGrad, HardSwish, HardSwishGrad, LeakyRelu, LeakyReluGrad, Mish,
 * MishGrad, Selu, SeluGrad, Shrink, ShrinkGrad, Softplus, SoftplusGrad, Softsign,
 * SoftsignGrad, Swish, SwishGrad, ThresholdedRelu and ThresholdedReluGrad. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

/* Activations that are a curve of one input: Celu, Elu, Gelu, HardSigmoid, HardSwish, LeakyRelu,
 * Mish, Selu, Shrink, Softplus, Softsign, Swish and ThresholdedRelu; and for each its gradient
 * XGrad(dy, x) of ai.weft, with the same attributes: one kernel, where ONNX's own operations would
 * take up to ten. */

static const char *const ways[] = {"none", "tanh", NULL}; /* of Gelu */

static wf_status infer_gelu(wf_graph *g, wf_node *n, wf_err *err)
{
    WF_TRY(wf_need_choice(n, "approximate", ways, err));
    return wf_infer_like_float(g, n, err);
}

static wf_status infer_gelu_grad(wf_graph *g, wf_node *n, wf_err *err)
{
    WF_TRY(wf_need_choice(n, "approximate", ways, err));
    return wf_infer_grad_like(g, n, err);
}

static const wf_attr_row alpha[] = {{"alpha", WF_ATTR_FLOAT, false}, {0}};
static const wf_attr_row alpha_beta[] = {
    {"alpha", WF_ATTR_FLOAT, false}, {"beta", WF_ATTR_FLOAT, false}, {0}};
static const wf_attr_row alpha_gamma[] = {
    {"alpha", WF_ATTR_FLOAT, false}, {"gamma", WF_ATTR_FLOAT, false}, {0}};
static const wf_attr_row approximate[] = {{"approximate", WF_ATTR_STRING, false}, {0}};
static const wf_attr_row bias_lambd[] = {
    {"bias", WF_ATTR_FLOAT, false}, {"lambd", WF_ATTR_FLOAT, false}, {0}};

#define CURVE_BY(id, name, since, attrs_, infer, infer_grad)                                       \
    const wf_op wf_op_##id = WF_ELEMENTWISE(WF_DOMAIN_ONNX, name, since, 1, infer,                 \
                                            .attrs = attrs_, WF_GRAD_NODE(name "Grad", "d0 x0"));  \
    const wf_op wf_op_##id##_grad = WF_ELEMENTWISE(                                                \
        WF_DOMAIN_WEFT, name "Grad", 1, 2, infer_grad, .attrs = attrs_,                            \
        .means = "(dy, x) -> dx; x is the forward input, attributes are the forward operation's");
#define CURVE(id, name, since, attrs)                                                              \
    CURVE_BY(id, name, since, attrs, wf_infer_like_float, wf_infer_grad_like)

CURVE(celu, "Celu", 12, alpha)
CURVE(elu, "Elu", 6, alpha)
CURVE_BY(gelu, "Gelu", 20, approximate, infer_gelu, infer_gelu_grad)
CURVE(hard_sigmoid, "HardSigmoid", 6, alpha_beta)
CURVE(hard_swish, "HardSwish", 14, NULL)
CURVE(leaky_relu, "LeakyRelu", 16, alpha)
CURVE(mish, "Mish", 18, NULL)
CURVE(selu, "Selu", 6, alpha_gamma)
CURVE(shrink, "Shrink", 9, bias_lambd)
CURVE(softplus, "Softplus", 1, NULL)
CURVE(softsign, "Softsign", 1, NULL)
CURVE(swish, "Swish", 24, alpha)
CURVE(thresholded_relu, "ThresholdedRelu", 10, alpha)
