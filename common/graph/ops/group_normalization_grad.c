/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/group_normalization_grad.c - ai.weft GroupNormalizationGrad(dy, x, scale) -> dx,
 * dscale, dbias. Without num_groups each channel is a group: InstanceNormalization's. */
#include "common/graph/infer.h"
#include "common/graph/ops/norm.h"
#include "common/graph/ops/ops.h"

static const wf_attr_row attrs[] = {
    {"epsilon", WF_ATTR_FLOAT, false}, {"num_groups", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_group_normalization_grad = {
    .name = "GroupNormalizationGrad",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .n_in_min = 3,
    .n_in_max = 3,
    .n_out_min = 1,
    .n_out_max = 3,
    .flags = WF_OP_FOLDABLE,
    .attrs = attrs,
    .infer = wf_infer_norm_grad,
};
