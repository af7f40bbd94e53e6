/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/index/non_zero.c - NonZero: int64 [rank, count], the places of elements that are
 * not 0, in row-major order. How many there are depends on the data, so this is for folding. */
#include "common/base/size.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    wf_axis axes[2] = {wf_axis_unknown(WF_MAX_RANK), wf_axis_of(1)};

    (void)g, (void)err;
    for (int32_t i = 0; i < x->rank; i++)
        axes[1] = wf_axis_mul(&axes[1], &x->axes[i]);
    axes[1] = wf_axis_unknown(x->rank < 0 ? -1 : axes[1].bound);
    if (x->rank >= 0)
        axes[0] = wf_axis_of(x->rank);
    wf_out_axes(n, 0, WF_I64, 2, axes);
    return WF_OK;
}

const wf_op wf_op_non_zero = WF_FOLDABLE(
    WF_DOMAIN_ONNX, "NonZero", 13, 1, 1, infer,
    .note = "how many there are must follow before the run: constants, or inputs of weft run",
    .no_grad_in = 1u << 0);
