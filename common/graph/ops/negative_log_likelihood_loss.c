/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/negative_log_likelihood_loss.c - NegativeLogLikelihoodLoss: as
 * SoftmaxCrossEntropyLoss, of log probabilities. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/label_loss.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    return wf_infer_label_loss(n, err);
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_value *in[] = {wf_grads_upstream(g, n, 0), n->in[0], n->in[1],
                      wf_node_has_in(n, 2) ? n->in[2] : NULL};
    wf_attr attrs[2];

    (void)err;
    return wf_grads_add(g, n, 0,
                        wf_emit_op(wf_grads_emit(g), "NegativeLogLikelihoodLossGrad", in[3] ? 4 : 3,
                                   in, wf_label_loss_attrs(n, attrs), attrs));
}

const wf_op wf_op_negative_log_likelihood_loss = {
    .name = "NegativeLogLikelihoodLoss",
    .domain = WF_DOMAIN_ONNX,
    .since = 13,
    .n_in_min = 2,
    .n_in_max = 3,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .no_grad_in = 1u << 1 | 1u << 2,
    .attrs = wf_label_loss_rows,
    .infer = infer,
    .grad = grad,
};
