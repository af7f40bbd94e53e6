/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/log_softmax_grad.c - ai.weft LogSoftmaxGrad: dx = dy - exp(y) sum(dy) along the
 * axis. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static const wf_attr_row attrs[] = {{"axis", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_log_softmax_grad = {
    .name = "LogSoftmaxGrad",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .n_in_min = 2,
    .n_in_max = 2,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .attrs = attrs,
    .infer = wf_infer_grad_like,
};
