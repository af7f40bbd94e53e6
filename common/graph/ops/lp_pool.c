/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/lp_pool.c - LpPool: (sum |x|^p)^(1/p) of what lies under the window. */
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
    return wf_grad_pool(g, n, "LpPoolGrad", true);
}

static const wf_attr_row attrs[] = {
    {"auto_pad", WF_ATTR_STRING, false}, {"ceil_mode", WF_ATTR_INT, false},
    {"dilations", WF_ATTR_INTS, false},  {"kernel_shape", WF_ATTR_INTS, true},
    {"p", WF_ATTR_INT, false},           {"pads", WF_ATTR_INTS, false},
    {"strides", WF_ATTR_INTS, false},    {0}};

const wf_op wf_op_lp_pool = {
    .name = "LpPool",
    .domain = WF_DOMAIN_ONNX,
    .since = 18,
    .n_in_min = 1,
    .n_in_max = 1,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .attrs = attrs,
    .infer = infer,
    .grad = grad,
};
