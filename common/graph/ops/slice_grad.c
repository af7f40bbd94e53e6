/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/slice_grad.c - ai.weft SliceGrad: zeros of the shape of x, and dy where Slice
 * with the same starts, ends, axes and steps takes from. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_float(n, 0, "dy", err));
    wf_out_like(n, 0, n->in[0]->dtype, n->in[1]);
    return WF_OK;
}

const wf_op wf_op_slice_grad = {
    .name = "SliceGrad",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .n_in_min = 4,
    .n_in_max = 6,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .infer = infer,
};
