/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/lstm_keep.c - ai.weft LSTMKeep(X, W, R, ...) -> Y, Y_h, Y_c, gates, cells: LSTM
 * that keeps its activations [directions, steps, batch, 4 hidden] and the cells after each step
 * [directions, steps, batch, hidden] for LSTMGrad. Zero behind the end of a row. */
#include "common/graph/ops/ops.h"
#include "common/graph/ops/recurrent.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    static const char *const activations[] = {"Sigmoid", "Tanh", "Tanh"};

    (void)g;
    WF_TRY(wf_infer_recurrent(n, 4, 2, 3, activations, err));
    return wf_infer_recurrent_kept(n, 2, err);
}

const wf_op wf_op_lstm_keep = {
    .name = "LSTMKeep",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .n_in_min = 3,
    .n_in_max = 8,
    .n_out_min = 0,
    .n_out_max = 5,
    .flags = WF_OP_FOLDABLE,
    .attrs = wf_recurrent_rows,
    .infer = infer,
};
