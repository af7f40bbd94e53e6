/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/average_pool.c - AveragePool: the mean of what lies under the window; elements
 * of the padding count when attr count_include_pad is set. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"
#include "common/graph/ops/spatial.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_float(n, 0, "X", err));
    return wf_infer_pool(n, err);
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    (void)err;
    return wf_grad_pool(g, n, "AveragePoolGrad", false);
}

static const wf_attr_row attrs[] = {
    {"auto_pad", WF_ATTR_STRING, false},       {"ceil_mode", WF_ATTR_INT, false},
    {"count_include_pad", WF_ATTR_INT, false}, {"dilations", WF_ATTR_INTS, false},
    {"kernel_shape", WF_ATTR_INTS, true},      {"pads", WF_ATTR_INTS, false},
    {"strides", WF_ATTR_INTS, false},          {0}};

const wf_op wf_op_average_pool = {
    .name = "AveragePool",
    .domain = WF_DOMAIN_ONNX,
    .since = 19,
    .n_in_min = 1,
    .n_in_max = 1,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .attrs = attrs,
    .infer = infer,
    .grad = grad,
};
