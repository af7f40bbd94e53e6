/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/reduce/arg_max.c - ArgMax and ArgMin: int64 index of the largest or smallest
 * along attr axis; of the first of equals, or the last with select_last_index. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    bool keep = wf_node_int(n, "keepdims", 1) != 0;
    wf_axis axes[WF_MAX_RANK];
    uint32_t axis, rank = 0;

    (void)g;
    wf_out_unknown(n, 0, WF_I64);
    if (x->rank < 0)
        return WF_OK;
    WF_TRY(wf_axis_number(wf_node_int(n, "axis", 0), (uint32_t)x->rank, &axis, err));
    for (uint32_t i = 0; i < (uint32_t)x->rank; i++) {
        if (i != axis)
            axes[rank++] = x->axes[i];
        else if (keep)
            axes[rank++] = wf_axis_of(1);
    }
    wf_out_axes(n, 0, WF_I64, rank, axes);
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"axis", WF_ATTR_INT, false},
                                    {"keepdims", WF_ATTR_INT, false},
                                    {"select_last_index", WF_ATTR_INT, false},
                                    {0}};

#define ROW(id, name_)                                                                             \
    const wf_op wf_op_##id = WF_FOLDABLE(WF_DOMAIN_ONNX, name_, 13, 1, 1, infer,                   \
                                         .no_grad_in = 1u << 0, .attrs = attrs);

ROW(arg_max, "ArgMax")
ROW(arg_min, "ArgMin")
