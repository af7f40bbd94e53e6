/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/lp_pool_grad.c - ai.weft LpPoolGrad(dy, x, y): LpPool's gradient. */
#include "common/graph/ops/ops.h"
#include "common/graph/ops/spatial.h"

static const wf_attr_row attrs[] = {
    {"auto_pad", WF_ATTR_STRING, false}, {"ceil_mode", WF_ATTR_INT, false},
    {"dilations", WF_ATTR_INTS, false},  {"kernel_shape", WF_ATTR_INTS, false},
    {"p", WF_ATTR_INT, false},           {"pads", WF_ATTR_INTS, false},
    {"strides", WF_ATTR_INTS, false},    {0}};

const wf_op wf_op_lp_pool_grad = {
    .name = "LpPoolGrad",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .n_in_min = 3,
    .n_in_max = 3,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .attrs = attrs,
    .infer = wf_infer_pool_grad,
};
