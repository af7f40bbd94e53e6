/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/sigmoid_grad.c - ai.weft SigmoidGrad: dx = dy y (1 - y). */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

const wf_op wf_op_sigmoid_grad = {
    .name = "SigmoidGrad",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .n_in_min = 2,
    .n_in_max = 2,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_ELEMENTWISE | WF_OP_FOLDABLE,
    .infer = wf_infer_grad_like,
};
