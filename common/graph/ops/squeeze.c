/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/squeeze.c - Squeeze: drops axes of size 1; all of them when none is named. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    char text[WF_VALUE_STR];
    wf_axis axes[WF_MAX_RANK];
    uint32_t mask, rank = 0;
    int64_t n_axes;
    bool known;

    wf_out_unknown(n, 0, x->dtype);
    if (x->rank < 0)
        return WF_OK;
    WF_TRY(wf_axes_input(n, 1, (uint32_t)x->rank, &known, &mask, &n_axes, err));
    if (!known)
        return WF_OK;
    for (int32_t i = 0; i < x->rank; i++) {
        bool named = mask >> i & 1u;

        if (!wf_node_has_in(n, 1) && x->axes[i].size < 0)
            return WF_OK; /* it may be 1 */
        if (named && x->axes[i].size >= 0 && x->axes[i].size != 1)
            return wf_fail(err, WF_SHAPE, NULL, "axis %d of %s is not 1", i,
                           wf_value_str(x, text, sizeof text));
        if (!named && (wf_node_has_in(n, 1) || x->axes[i].size != 1))
            axes[rank++] = x->axes[i];
    }
    wf_out_axes(n, 0, x->dtype, rank, axes);
    return wf_carry_input(g, n, err);
}

const wf_op wf_op_squeeze = {
    .name = "Squeeze",
    .domain = WF_DOMAIN_ONNX,
    .since = 13,
    .n_in_min = 1,
    .n_in_max = 2,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .no_grad_in = 1u << 1,
    .infer = infer,
    .grad = wf_grad_reshape_back,
    .upgrade = wf_upgrade_axes,
};
