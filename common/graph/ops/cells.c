/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/cells.c - GRU, LSTM and RNN: outputs Y, Y_h (and Y_c). GRU has its gates in the
 * order z r h; with linear_before_reset 1 the reset gate comes after the product, as in PyTorch.
 * LSTM has them in the order i o f c, with optional peepholes. RNN has Tanh or Relu. */
#include "common/base/cc.h"
#include "common/graph/ops/ops.h"
#include "common/graph/ops/recurrent.h"

/* What gates and the state go through, in order. */
static const char *const gru[] = {"Sigmoid", "Tanh"};
static const char *const lstm[] = {"Sigmoid", "Tanh", "Tanh"};
static const char *const rnn[] = {"Tanh"};

#define ROW(id, name_, gates, n_states, most_in)                                                   \
    static wf_status infer_##id(wf_graph *g, wf_node *n, wf_err *err)                              \
    {                                                                                              \
        (void)g;                                                                                   \
        return wf_infer_recurrent(n, gates, n_states, WF_COUNT(id), id, err);                      \
    }                                                                                              \
    static wf_status grad_##id(wf_grads *g, const wf_node *n, wf_err *err)                         \
    {                                                                                              \
        (void)err;                                                                                 \
        return wf_grad_recurrent(g, n, name_ "Grad", n_states);                                    \
    }                                                                                              \
    const wf_op wf_op_##id = {                                                                     \
        .name = name_,                                                                             \
        .domain = WF_DOMAIN_ONNX,                                                                  \
        .since = 14,                                                                               \
        .n_in_min = 3,                                                                             \
        .n_in_max = most_in,                                                                       \
        .n_out_min = 0,                                                                            \
        .n_out_max = 1 + (n_states),                                                               \
        .flags = WF_OP_FOLDABLE,                                                                   \
        .no_grad_in = 1u << 4,                                                                     \
        .attrs = wf_recurrent_rows,                                                                \
        .infer = infer_##id,                                                                       \
        .grad = grad_##id,                                                                         \
    };

ROW(gru, "GRU", 3, 1, 6)
ROW(lstm, "LSTM", 4, 2, 8)
ROW(rnn, "RNN", 1, 1, 6)
