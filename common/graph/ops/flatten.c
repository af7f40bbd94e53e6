/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/flatten.c - Flatten: the axes before attr axis become one, and the rest another.
 */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    int64_t axis = wf_node_int(n, "axis", 1);
    wf_axis axes[2] = {wf_axis_of(1), wf_axis_of(1)};

    (void)g;
    wf_out_unknown(n, 0, x->dtype);
    if (x->rank < 0)
        return WF_OK;
    if (axis < -x->rank || axis > x->rank)
        return wf_fail(err, WF_SHAPE, NULL, "axis %lld is not in a tensor of %d axes",
                       (long long)axis, x->rank);
    if (axis < 0)
        axis += x->rank;
    for (int32_t i = 0; i < x->rank; i++)
        axes[i >= axis] = wf_axis_mul(&axes[i >= axis], &x->axes[i]);
    wf_out_axes(n, 0, x->dtype, 2, axes);
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"axis", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_flatten = {
    .name = "Flatten",
    .domain = WF_DOMAIN_ONNX,
    .since = 13,
    .n_in_min = 1,
    .n_in_max = 1,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .attrs = attrs,
    .infer = infer,
    .grad = wf_grad_reshape_back,
};
