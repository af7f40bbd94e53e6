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
    const wf_op wf_op_##id = WF_OPERATION(                                                         \
        WF_DOMAIN_ONNX, name_, 14, 3, most_in, 0, 1 + (n_states), WF_OP_FOLDABLE, infer_##id,      \
        .no_grad_in = 1u << 4, .attrs = wf_recurrent_rows, .grad = grad_##id);

ROW(gru, "GRU", 3, 1, 6)
ROW(lstm, "LSTM", 4, 2, 8)
ROW(rnn, "RNN", 1, 1, 6)

/* ai.weft GRUKeep(X, W, R, ...) -> Y, Y_h, gates, resets: GRU that keeps its activations
 * [directions, steps, batch, 3 hidden] and, [directions, steps, batch, hidden], what gate r makes
 * of the state before (linear_before_reset: what it multiplies) for GRUGrad. Zero behind the end
 * of a row. */

static wf_status infer_gru_keep(wf_graph *g, wf_node *n, wf_err *err)
{
    WF_TRY(infer_gru(g, n, err));
    return wf_infer_recurrent_kept(n, 1, err);
}

const wf_op wf_op_gru_keep =
    WF_OPERATION(WF_DOMAIN_WEFT, "GRUKeep", 1, 3, 6, 0, 4, WF_OP_FOLDABLE, infer_gru_keep,
                 .means = "(X, W, R, ...) -> Y, (Y_h), gates, resets; GRU that keeps for its "
                          "gradient what that would work out again: activations and what gate r "
                          "gives (linear_before_reset: takes), zero behind a row's end; no clip",
                 .attrs = wf_recurrent_rows);

/* ai.weft GRUGrad(dY, dY_h, X, W, R, B, lens, h0, Y, (gates), (resets)) -> dX, dW, dR, dB, dh0:
 * backpropagation through time. All but X, W, R and Y may be absent; with gates and resets, which
 * GRUKeep gives, they are not worked out again. */

static wf_status infer_gru_grad(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    return wf_infer_recurrent_grad(n, 2, 9, err);
}

const wf_op wf_op_gru_grad =
    WF_OPERATION(WF_DOMAIN_WEFT, "GRUGrad", 1, 0, 11, 0, 5, WF_OP_FOLDABLE, infer_gru_grad,
                 .means = "((dY), (dY_h), X, W, R, (B), (lens), (h0), Y, (gates), (resets)) -> dX, "
                          "dW, dR, dB, dh0; GRU's attrs; any output may be left out",
                 .attrs = wf_recurrent_rows);

/* ai.weft LSTMKeep(X, W, R, ...) -> Y, Y_h, Y_c, gates, cells: LSTM that keeps its activations
 * [directions, steps, batch, 4 hidden] and the cells after each step [directions, steps, batch,
 * hidden] for LSTMGrad. Zero behind the end of a row. */

static wf_status infer_lstm_keep(wf_graph *g, wf_node *n, wf_err *err)
{
    WF_TRY(infer_lstm(g, n, err));
    return wf_infer_recurrent_kept(n, 2, err);
}

const wf_op wf_op_lstm_keep = WF_OPERATION(
    WF_DOMAIN_WEFT, "LSTMKeep", 1, 3, 8, 0, 5, WF_OP_FOLDABLE, infer_lstm_keep,
    .means = "(X, W, R, ...) -> Y, (Y_h), (Y_c), gates, cells; LSTM that keeps for its "
             "gradient what that would work out again: activations and cells, zero "
             "behind a row's end; no clip",
    .attrs = wf_recurrent_rows);

/* ai.weft LSTMGrad(dY, dY_h, dY_c, X, W, R, B, lens, h0, c0, P, Y, (gates), (cells)) -> dX, dW,
 * dR, dB, dh0, dc0, dP: backpropagation through time. All but X, W, R and Y may be absent; with
 * gates and cells, which LSTMKeep gives, they are not worked out again. */

static wf_status infer_lstm_grad(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    return wf_infer_recurrent_grad(n, 3, 12, err);
}

const wf_op wf_op_lstm_grad =
    WF_OPERATION(WF_DOMAIN_WEFT, "LSTMGrad", 1, 0, 14, 0, 7, WF_OP_FOLDABLE, infer_lstm_grad,
                 .means = "((dY), (dY_h), (dY_c), X, W, R, (B), (lens), (h0), (c0), (P), Y, "
                          "(gates), (cells)) -> dX, dW, dR, dB, dh0, dc0, dP; LSTM's attrs; any "
                          "output may be left out",
                 .attrs = wf_recurrent_rows);

/* ai.weft RNNGrad(dY, dY_h, X, W, R, B, lens, h0, Y) -> dX, dW, dR, dB, dh0: backpropagation
 * through time. All but X, W, R and Y may be absent. */

const wf_op wf_op_rnn_grad =
    WF_OPERATION(WF_DOMAIN_WEFT, "RNNGrad", 1, 0, 9, 0, 5, WF_OP_FOLDABLE, infer_gru_grad,
                 .means = "((dY), (dY_h), X, W, R, (B), (lens), (h0), Y) -> dX, dW, dR, dB, dh0; "
                          "RNN's attrs; any output may be left out",
                 .attrs = wf_recurrent_rows);
