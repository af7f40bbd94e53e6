/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/sigmoid_cross_entropy_grad.c - ai.weft SigmoidCrossEntropyGrad: dx = (sigmoid(x)
 * - z) dloss, divided by the number of logits for "mean". */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_float(n, 1, "logits", err));
    wf_out_like(n, 0, n->in[1]->dtype, n->in[1]);
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"reduction", WF_ATTR_STRING, false}, {0}};

const wf_op wf_op_sigmoid_cross_entropy_grad = {
    .name = "SigmoidCrossEntropyGrad",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .n_in_min = 3,
    .n_in_max = 3,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .attrs = attrs,
    .infer = infer,
};
