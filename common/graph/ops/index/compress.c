/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/index/compress.c - Compress: the slices along attr axis, or without it the
 * elements, whose condition is true. How many there are depends on the data, so this is for
 * folding. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"
#include <string.h>

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0], *condition = n->in[1];
    wf_axis axes[WF_MAX_RANK];
    uint32_t axis = 0;

    (void)g;
    WF_TRY(wf_need_dtype(n, 1, WF_BOOL, "condition", err));
    if (condition->rank >= 0 && condition->rank != 1)
        return wf_fail(err, WF_SHAPE, NULL, "condition has %d axes, and must have one",
                       condition->rank);
    wf_out_unknown(n, 0, x->dtype);
    if (!wf_node_attr(n, "axis")) {
        axes[0] = wf_axis_unknown(-1);
        wf_out_axes(n, 0, x->dtype, 1, axes);
        return WF_OK;
    }
    if (x->rank < 0)
        return WF_OK;
    WF_TRY(wf_axis_number(wf_node_int(n, "axis", 0), (uint32_t)x->rank, &axis, err));
    memcpy(axes, x->axes, sizeof axes);
    axes[axis] = wf_axis_unknown(x->axes[axis].bound);
    wf_out_axes(n, 0, x->dtype, (uint32_t)x->rank, axes);
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"axis", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_compress = WF_FOLDABLE(
    WF_DOMAIN_ONNX, "Compress", 11, 2, 2, infer,
    .note = "how many remain must follow before the run: constants, or inputs of weft run",
    .no_grad_in = 1u << 1, .attrs = attrs);
