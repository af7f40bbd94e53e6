/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/gru.c - GRU, gates in the order z r h; with linear_before_reset 1 the reset gate
 * comes after the product, as in PyTorch. Outputs Y and Y_h. */
#include "common/graph/ops/ops.h"
#include "common/graph/ops/recurrent.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    static const char *const activations[] = {"Sigmoid", "Tanh"};

    (void)g;
    return wf_infer_recurrent(n, 3, 1, 2, activations, err);
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    (void)err;
    return wf_grad_recurrent(g, n, "GRUGrad", 1);
}

const wf_op wf_op_gru = {
    .name = "GRU",
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
