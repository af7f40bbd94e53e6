/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/average_pool_grad.c - ai.weft AveragePoolGrad(dy, x): AveragePool's gradient; of
 * x only the shape is read. Without kernel_shape it is GlobalAveragePool's. */
#include "common/graph/ops/ops.h"
#include "common/graph/ops/spatial.h"

static const wf_attr_row attrs[] = {
    {"auto_pad", WF_ATTR_STRING, false},       {"ceil_mode", WF_ATTR_INT, false},
    {"count_include_pad", WF_ATTR_INT, false}, {"dilations", WF_ATTR_INTS, false},
    {"kernel_shape", WF_ATTR_INTS, false},     {"pads", WF_ATTR_INTS, false},
    {"strides", WF_ATTR_INTS, false},          {0}};

const wf_op wf_op_average_pool_grad = {
    .name = "AveragePoolGrad",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .n_in_min = 2,
    .n_in_max = 2,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .attrs = attrs,
    .infer = wf_infer_pool_grad,
};
