/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/max_pool.c - MaxPool: the largest element under the window. Output 1 is where it
 * lies in X, flat; attr storage_order 1 counts the spatial axes from the first. The gradient goes
 * to the first of equals. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"
#include "common/graph/ops/spatial.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    if (n->in[0]->dtype == WF_BOOL)
        return wf_fail(err, WF_SHAPE, "Cast it first", "X is bool, and must be a number");
    WF_TRY(wf_infer_pool(n, err));
    if (n->out[0] && n->out[0]->rank >= 0)
        wf_out_like(n, 1, WF_I64, n->out[0]);
    else
        wf_out_unknown(n, 1, WF_I64);
    return WF_OK;
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    (void)err;
    return wf_grad_pool(g, n, "MaxPoolGrad", true);
}

static const wf_attr_row attrs[] = {
    {"auto_pad", WF_ATTR_STRING, false}, {"ceil_mode", WF_ATTR_INT, false},
    {"dilations", WF_ATTR_INTS, false},  {"kernel_shape", WF_ATTR_INTS, true},
    {"pads", WF_ATTR_INTS, false},       {"storage_order", WF_ATTR_INT, false},
    {"strides", WF_ATTR_INTS, false},    {0}};

const wf_op wf_op_max_pool = {
    .name = "MaxPool",
    .domain = WF_DOMAIN_ONNX,
    .since = 12,
    .n_in_min = 1,
    .n_in_max = 1,
    .n_out_min = 1,
    .n_out_max = 2,
    .flags = WF_OP_FOLDABLE,
    .attrs = attrs,
    .infer = infer,
    .grad = grad,
};
