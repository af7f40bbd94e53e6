/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/unsqueeze.c - Unsqueeze: axes of size 1 at places counted in the result. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0], *where = n->in[1];
    wf_axis axes[WF_MAX_RANK];
    wf_elem elems[WF_MAX_CARRIED];
    uint32_t count, mask, rank, from = 0;
    int64_t n_axes;
    bool known;

    wf_out_unknown(n, 0, x->dtype);
    if (x->rank < 0 || !wf_value_elems(where, elems, &count))
        return WF_OK;
    rank = (uint32_t)x->rank + count;
    if (rank > WF_MAX_RANK)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "a result of %u axes, and weft has %d at most",
                       rank, WF_MAX_RANK);
    WF_TRY(wf_axes_input(n, 1, rank, &known, &mask, &n_axes, err));
    if (!known)
        return WF_OK;
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = mask >> i & 1u ? wf_axis_of(1) : x->axes[from++];
    wf_out_axes(n, 0, x->dtype, rank, axes);
    return wf_carry_input(g, n, err);
}

const wf_op wf_op_unsqueeze = {
    .name = "Unsqueeze",
    .domain = WF_DOMAIN_ONNX,
    .since = 13,
    .n_in_min = 2,
    .n_in_max = 2,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .no_grad_in = 1u << 1,
    .infer = infer,
    .grad = wf_grad_reshape_back,
};
