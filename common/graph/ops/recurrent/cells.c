/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/recurrent/cells.c - GRU, GRUGrad, GRUKeep, LSTM, LSTMGrad, LSTMKeep, RNN and
 * RNNGrad. */
#include "common/base/cc.h"
#include "common/graph/ops/ops.h"
#include "common/graph/ops/recurrent/recurrent.h"

/* GRU, LSTM and RNN: outputs Y, Y_h (and Y_c). GRU has its gates in the order z r h; with
 * linear_before_reset 1 the reset gate comes after the product, as in PyTorch. LSTM has them in
 * the order i o f c, with optional peepholes. RNN has Tanh or Relu. */

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

/* ai.weft GRUKeep(X, W, R, ...) -> Y, Y_h, gates, resets: GRU that keeps its activations
 * [directions, steps, batch, 3 hidden] and, [directions, steps, batch, hidden], what gate r makes
 * of the state before (linear_before_reset: what it multiplies) for GRUGrad. Zero behind the end
 * of a row. */

static wf_status infer_gru_keep(wf_graph *g, wf_node *n, wf_err *err)
{
    static const char *const activations[] = {"Sigmoid", "Tanh"};

    (void)g;
    WF_TRY(wf_infer_recurrent(n, 3, 1, 2, activations, err));
    return wf_infer_recurrent_kept(n, 1, err);
}

const wf_op wf_op_gru_keep = {
    .name = "GRUKeep",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .means = "(X, W, R, ...) -> Y, (Y_h), gates, resets; GRU that keeps for its "
             "gradient what that would work out again: activations and what gate r "
             "gives (linear_before_reset: takes), zero behind a row's end; no clip",
    .n_in_min = 3,
    .n_in_max = 6,
    .n_out_min = 0,
    .n_out_max = 4,
    .flags = WF_OP_FOLDABLE,
    .attrs = wf_recurrent_rows,
    .infer = infer_gru_keep,
};

/* ai.weft GRUGrad(dY, dY_h, X, W, R, B, lens, h0, Y, (gates), (resets)) -> dX, dW, dR, dB, dh0:
 * backpropagation through time. All but X, W, R and Y may be absent; with gates and resets, which
 * GRUKeep gives, they are not worked out again. */

static wf_status infer_gru_grad(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    return wf_infer_recurrent_grad(n, 2, 9, err);
}

const wf_op wf_op_gru_grad = {
    .name = "GRUGrad",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .means = "((dY), (dY_h), X, W, R, (B), (lens), (h0), Y, (gates), (resets)) -> dX, "
             "dW, dR, dB, dh0; GRU's attrs; any output may be left out",
    .n_in_min = 0,
    .n_in_max = 11,
    .n_out_min = 0,
    .n_out_max = 5,
    .flags = WF_OP_FOLDABLE,
    .attrs = wf_recurrent_rows,
    .infer = infer_gru_grad,
};

/* ai.weft LSTMKeep(X, W, R, ...) -> Y, Y_h, Y_c, gates, cells: LSTM that keeps its activations
 * [directions, steps, batch, 4 hidden] and the cells after each step [directions, steps, batch,
 * hidden] for LSTMGrad. Zero behind the end of a row. */

static wf_status infer_lstm_keep(wf_graph *g, wf_node *n, wf_err *err)
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
    .means = "(X, W, R, ...) -> Y, (Y_h), (Y_c), gates, cells; LSTM that keeps for its "
             "gradient what that would work out again: activations and cells, zero "
             "behind a row's end; no clip",
    .n_in_min = 3,
    .n_in_max = 8,
    .n_out_min = 0,
    .n_out_max = 5,
    .flags = WF_OP_FOLDABLE,
    .attrs = wf_recurrent_rows,
    .infer = infer_lstm_keep,
};

/* ai.weft LSTMGrad(dY, dY_h, dY_c, X, W, R, B, lens, h0, c0, P, Y, (gates), (cells)) -> dX, dW,
 * dR, dB, dh0, dc0, dP: backpropagation through time. All but X, W, R and Y may be absent; with
 * gates and cells, which LSTMKeep gives, they are not worked out again. */

static wf_status infer_lstm_grad(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    return wf_infer_recurrent_grad(n, 3, 12, err);
}

const wf_op wf_op_lstm_grad = {
    .name = "LSTMGrad",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .means = "((dY), (dY_h), (dY_c), X, W, R, (B), (lens), (h0), (c0), (P), Y, "
             "(gates), (cells)) -> dX, dW, dR, dB, dh0, dc0, dP; LSTM's attrs; any "
             "output may be left out",
    .n_in_min = 0,
    .n_in_max = 14,
    .n_out_min = 0,
    .n_out_max = 7,
    .flags = WF_OP_FOLDABLE,
    .attrs = wf_recurrent_rows,
    .infer = infer_lstm_grad,
};

/* ai.weft RNNGrad(dY, dY_h, X, W, R, B, lens, h0, Y) -> dX, dW, dR, dB, dh0: backpropagation
 * through time. All but X, W, R and Y may be absent. */

static wf_status infer_rnn_grad(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    return wf_infer_recurrent_grad(n, 2, 9, err);
}

const wf_op wf_op_rnn_grad = {
    .name = "RNNGrad",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .means = "((dY), (dY_h), X, W, R, (B), (lens), (h0), Y) -> dX, dW, dR, dB, dh0; "
             "RNN's attrs; any output may be left out",
    .n_in_min = 0,
    .n_in_max = 9,
    .n_out_min = 0,
    .n_out_max = 5,
    .flags = WF_OP_FOLDABLE,
    .attrs = wf_recurrent_rows,
    .infer = infer_rnn_grad,
};
