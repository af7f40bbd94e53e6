/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/negative_log_likelihood_loss_grad.c - ai.weft NegativeLogLikelihoodLossGrad:
 * -dloss w[label] / sum of w over the batch ("mean") at each label, and 0 elsewhere. */
#include "common/graph/ops/label_loss.h"
#include "common/graph/ops/ops.h"

const wf_op wf_op_negative_log_likelihood_loss_grad = {
    .name = "NegativeLogLikelihoodLossGrad",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .n_in_min = 3,
    .n_in_max = 4,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .attrs = wf_label_loss_rows,
    .infer = wf_infer_label_loss_grad,
};
