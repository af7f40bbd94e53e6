/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/max_pool_grad.c - ai.weft MaxPoolGrad(dy, x, y): dy goes to the first element of
 * each window that equals y. Without kernel_shape it is GlobalMaxPool's. */
#include "common/graph/ops/ops.h"
#include "common/graph/ops/spatial.h"

static const wf_attr_row attrs[] = {
    {"auto_pad", WF_ATTR_STRING, false}, {"ceil_mode", WF_ATTR_INT, false},
    {"dilations", WF_ATTR_INTS, false},  {"kernel_shape", WF_ATTR_INTS, false},
    {"pads", WF_ATTR_INTS, false},       {"storage_order", WF_ATTR_INT, false},
    {"strides", WF_ATTR_INTS, false},    {0}};

const wf_op wf_op_max_pool_grad = {
    .name = "MaxPoolGrad",
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
