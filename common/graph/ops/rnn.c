/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/rnn.c - RNN with Tanh or Relu; outputs Y and Y_h. */
#include "common/graph/ops/ops.h"
#include "common/graph/ops/recurrent.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    static const char *const activations[] = {"Tanh"};

    (void)g;
    return wf_infer_recurrent(n, 1, 1, 1, activations, err);
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    (void)err;
    return wf_grad_recurrent(g, n, "RNNGrad", 1);
}

const wf_op wf_op_rnn = {
    .name = "RNN",
    .domain = WF_DOMAIN_ONNX,
    .since = 14,
    .n_in_min = 3,
    .n_in_max = 6,
    .n_out_min = 0,
    .n_out_max = 2,
    .flags = WF_OP_FOLDABLE,
    .no_grad_in = 1u << 4,
    .attrs = wf_recurrent_rows,
    .infer = infer,
    .grad = grad,
};
