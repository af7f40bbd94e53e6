/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/batch_normalization_grad.c - ai.weft BatchNormalizationGrad(dy, x, scale,
 * (mean), (var)) -> dx, dscale, dbias. With training_mode 1 mean and var are the batch's, and
 * worked out when they are absent. */
#include "common/graph/infer.h"
#include "common/graph/ops/norm.h"
#include "common/graph/ops/ops.h"

static const wf_attr_row attrs[] = {
    {"epsilon", WF_ATTR_FLOAT, false}, {"training_mode", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_batch_normalization_grad = {
    .name = "BatchNormalizationGrad",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .n_in_min = 3,
    .n_in_max = 5,
    .n_out_min = 1,
    .n_out_max = 3,
    .flags = WF_OP_FOLDABLE,
    .attrs = attrs,
    .infer = wf_infer_norm_grad,
};
