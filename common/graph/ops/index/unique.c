/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/index/unique.c - Unique: the different elements, or slices along attr axis, in
 * order (attr sorted, 1) or as they come first; the index of the first of each, for each the index
 * of its like, and how often each occurs. How many there are depends on the data, so this is for
 * folding.
 */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"
#include <string.h>

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    wf_axis axes[WF_MAX_RANK], count = wf_axis_unknown(-1), all = wf_axis_of(1);
    uint32_t axis = 0;

    (void)g;
    wf_out_unknown(n, 0, x->dtype);
    if (x->rank >= 0 && wf_node_attr(n, "axis")) {
        WF_TRY(wf_axis_number(wf_node_int(n, "axis", 0), (uint32_t)x->rank, &axis, err));
        memcpy(axes, x->axes, sizeof axes);
        all = x->axes[axis];
        count = wf_axis_unknown(all.bound);
        axes[axis] = count;
        wf_out_axes(n, 0, x->dtype, (uint32_t)x->rank, axes);
    } else if (!wf_node_attr(n, "axis")) {
        for (int32_t i = 0; i < x->rank; i++)
            all = wf_axis_mul(&all, &x->axes[i]);
        if (x->rank < 0)
            all = wf_axis_unknown(-1);
        count = wf_axis_unknown(all.bound);
        wf_out_axes(n, 0, x->dtype, 1, &count);
    } else {
        all = wf_axis_unknown(-1);
    }
    wf_out_axes(n, 1, WF_I64, 1, &count);
    wf_out_axes(n, 2, WF_I64, 1, &all);
    wf_out_axes(n, 3, WF_I64, 1, &count);
    return WF_OK;
}

static const wf_attr_row attrs[] = {
    {"axis", WF_ATTR_INT, false}, {"sorted", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_unique = WF_OPERATION(
    WF_DOMAIN_ONNX, "Unique", 11, 1, 1, 1, 4, WF_OP_FOLDABLE, infer,
    .note = "how many there are must follow before the run: constants, or inputs of weft run",
    .no_grad_in = 1u << 0, .attrs = attrs);
