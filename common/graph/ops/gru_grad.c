/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/gru_grad.c - ai.weft GRUGrad(dY, dY_h, X, W, R, B, lens, h0, Y, (gates),
 * (resets)) -> dX, dW, dR, dB, dh0: backpropagation through time. All but X, W, R and Y may be
 * absent; with gates and resets, which GRUKeep gives, they are not worked out again. */
#include "common/graph/ops/ops.h"
#include "common/graph/ops/recurrent.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    return wf_infer_recurrent_grad(n, 2, 9, err);
}

const wf_op wf_op_gru_grad = {
    .name = "GRUGrad",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .n_in_min = 0,
    .n_in_max = 11,
    .n_out_min = 0,
    .n_out_max = 5,
    .flags = WF_OP_FOLDABLE,
    .attrs = wf_recurrent_rows,
    .infer = infer,
};
