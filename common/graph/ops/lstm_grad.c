/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/lstm_grad.c - ai.weft LSTMGrad(dY, dY_h, dY_c, X, W, R, B, lens, h0, c0, P, Y,
 * (gates), (cells)) -> dX, dW, dR, dB, dh0, dc0, dP: backpropagation through time. All but X, W, R
 * and Y may be absent; with gates and cells, which LSTMKeep gives, they are not worked out again.
 */
#include "common/graph/ops/ops.h"
#include "common/graph/ops/recurrent.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    return wf_infer_recurrent_grad(n, 3, 12, err);
}

const wf_op wf_op_lstm_grad = {
    .name = "LSTMGrad",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .n_in_min = 0,
    .n_in_max = 14,
    .n_out_min = 0,
    .n_out_max = 7,
    .flags = WF_OP_FOLDABLE,
    .attrs = wf_recurrent_rows,
    .infer = infer,
};
