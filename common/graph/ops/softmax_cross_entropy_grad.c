/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/softmax_cross_entropy_grad.c - ai.weft SoftmaxCrossEntropyGrad: dscores =
 * (exp(log_prob) - onehot(labels)) dloss w[label] / sum of w over the batch ("mean"), and 0 where
 * labels are ignored. */
#include "common/graph/ops/label_loss.h"
#include "common/graph/ops/ops.h"

const wf_op wf_op_softmax_cross_entropy_grad = {
    .name = "SoftmaxCrossEntropyGrad",
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
