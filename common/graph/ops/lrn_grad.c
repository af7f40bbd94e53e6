/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/lrn_grad.c - ai.weft LRNGrad(dy, x): LRN's gradient. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static const wf_attr_row attrs[] = {{"alpha", WF_ATTR_FLOAT, false},
                                    {"beta", WF_ATTR_FLOAT, false},
                                    {"bias", WF_ATTR_FLOAT, false},
                                    {"size", WF_ATTR_INT, true},
                                    {0}};

const wf_op wf_op_lrn_grad = {
    .name = "LRNGrad",
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
