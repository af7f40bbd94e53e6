/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/lstm.c - LSTM, gates in the order i o f c, with optional peepholes; outputs Y,
 * Y_h and Y_c. */
#include "common/graph/ops/ops.h"
#include "common/graph/ops/recurrent.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    static const char *const activations[] = {"Sigmoid", "Tanh", "Tanh"};

    (void)g;
    return wf_infer_recurrent(n, 4, 2, 3, activations, err);
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    (void)err;
    return wf_grad_recurrent(g, n, "LSTMGrad", 2);
}

const wf_op wf_op_lstm = {
    .name = "LSTM",
    .domain = WF_DOMAIN_ONNX,
    .since = 14,
    .n_in_min = 3,
    .n_in_max = 8,
    .n_out_min = 0,
    .n_out_max = 3,
    .flags = WF_OP_FOLDABLE,
    .no_grad_in = 1u << 4,
    .attrs = wf_recurrent_rows,
    .infer = infer,
    .grad = grad,
};
