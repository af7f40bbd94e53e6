/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/recurrent/recurrent.c - GRU, GRUGrad, GRUKeep, LSTM, LSTMGrad, LSTMKeep, RNN and
 * RNNGrad. */
#include "common/base/cc.h"
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#include <string.h>
#include <strings.h>

/* Inputs of LSTM, the one with most. */
enum { LENS = 4, MOST_IN = 8 };

static const wf_attr_row attrs[] = {
    {"activation_alpha", WF_ATTR_FLOATS, false}, {"activation_beta", WF_ATTR_FLOATS, false},
    {"activations", WF_ATTR_STRINGS, false},     {"clip", WF_ATTR_FLOAT, false},
    {"direction", WF_ATTR_STRING, false},        {"hidden_size", WF_ATTR_INT, false},
    {"input_forget", WF_ATTR_INT, false},        {"layout", WF_ATTR_INT, false},
    {"linear_before_reset", WF_ATTR_INT, false}, {0}};

static wf_status check_activations(const wf_node *n, uint32_t dirs, uint32_t count,
                                   const char *const known[], wf_err *err)
{
    const wf_attr *a = wf_node_attr(n, "activations");
    bool rnn = count == 1;

    if (!a)
        return WF_OK;
    if (a->n != (size_t)count * dirs)
        return wf_fail(err, WF_INVALID, NULL, "it has %zu activations, and must have %u", a->n,
                       count * dirs);
    for (uint32_t i = 0; i < a->n; i++)
        if (strcasecmp(a->strings[i], known[i % count]) != 0 &&
            !(rnn && strcasecmp(a->strings[i], "Relu") == 0))
            return wf_fail(err, WF_UNSUPPORTED, NULL,
                           "activation %u is \"%.40s\"; weft has %s%s there", i, a->strings[i],
                           known[i % count], rnn ? " and Relu" : "");
    return WF_OK;
}

static wf_status check_attributes(const wf_node *n, uint32_t *dirs, uint32_t count,
                                  const char *const known[], wf_err *err)
{
    static const char *const directions[] = {"forward", "reverse", "bidirectional", NULL};
    const char *direction = wf_node_string(n, "direction", directions[0]);

    *dirs = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    WF_TRY(wf_need_choice(n, "direction", directions, err));
    if (wf_node_int(n, "input_forget", 0))
        return wf_fail(err, WF_UNSUPPORTED, NULL,
                       "input_forget is set, and weft keeps the two gates apart");
    if (!(wf_node_float(n, "clip", 0) >= 0))
        return wf_fail(err, WF_INVALID, NULL, "clip is %g, and must be positive",
                       (double)wf_node_float(n, "clip", 0));
    return check_activations(n, *dirs, count, known, err);
}

/* The sizes of W [dirs, gates hidden, input] and R [dirs, gates hidden, hidden] against X. */
static wf_status check_shapes(const wf_node *n, int64_t gates, uint32_t dirs, wf_err *err)
{
    const wf_value *x = n->in[0], *w = n->in[1], *r = n->in[2];
    wf_axis d = wf_axis_of(dirs), factor = wf_axis_of(gates), rows;
    char a[WF_VALUE_STR], b[WF_VALUE_STR], c[WF_VALUE_STR];
    bool fits = (x->rank < 0 || x->rank == 3) && (w->rank < 0 || w->rank == 3) && r->rank == 3;

    if (fits) {
        rows = wf_axis_mul(&factor, &r->axes[2]);
        fits = !wf_axes_clash(&r->axes[1], &rows) && !wf_axes_clash(&r->axes[0], &d);
    }
    if (fits && w->rank == 3)
        fits = !wf_axes_clash(&w->axes[1], &rows) && !wf_axes_clash(&w->axes[0], &d) &&
               (x->rank < 0 || !wf_axes_clash(&w->axes[2], &x->axes[2]));
    return fits ? WF_OK
                : wf_fail(err, WF_SHAPE, NULL,
                          "X is %s, W %s and R %s, with %u direction%s and %lld gates",
                          wf_value_str(x, a, sizeof a), wf_value_str(w, b, sizeof b),
                          wf_value_str(r, c, sizeof c), dirs, dirs == 1 ? "" : "s",
                          (long long)gates);
}

/* Outputs Y, Y_h (and Y_c) of X, W, R, B, sequence_lens, initial_h, ... `gates` of hidden rows
 * each. activations [n]: the only ones there are, in order; others are WF_UNSUPPORTED. */
static wf_status infer_recurrent(wf_node *n, int64_t gates, uint32_t n_states,
                                 uint32_t n_activations, const char *const activations[],
                                 wf_err *err)
{
    const wf_value *x = n->in[0], *r = n->in[2];
    bool batch_first = wf_node_int(n, "layout", 0) != 0;
    wf_axis steps, batch, y[4], state[3];
    uint32_t dirs;

    wf_assert(x && r); /* n_in_min was checked before */
    WF_TRY(wf_need_float(n, 0, "X", err));
    for (uint32_t i = 1; i < n->n_in; i++)
        if (i != LENS && wf_node_has_in(n, i))
            WF_TRY(wf_need_same_dtype(n, 0, i, err));
    if (wf_node_has_in(n, LENS))
        WF_TRY(wf_need_int(n, LENS, "sequence_lens", err));
    WF_TRY(check_attributes(n, &dirs, n_activations, activations, err));
    for (uint32_t i = 0; i <= n_states; i++)
        wf_out_unknown(n, i, x->dtype);
    if (r->rank < 0)
        return WF_OK;
    WF_TRY(check_shapes(n, gates, dirs, err));
    if (x->rank < 0)
        return WF_OK;
    steps = x->axes[batch_first ? 1 : 0];
    batch = x->axes[batch_first ? 0 : 1];
    y[0] = batch_first ? batch : steps;
    y[1] = batch_first ? steps : wf_axis_of(dirs);
    y[2] = batch_first ? wf_axis_of(dirs) : batch;
    y[3] = r->axes[2];
    state[0] = batch_first ? batch : wf_axis_of(dirs);
    state[1] = batch_first ? wf_axis_of(dirs) : batch;
    state[2] = r->axes[2];
    wf_out_axes(n, 0, x->dtype, 4, y);
    for (uint32_t i = 1; i <= n_states; i++)
        wf_out_axes(n, i, x->dtype, 3, state);
    return WF_OK;
}

static wf_status check_clip(const wf_node *n, wf_err *err)
{
    if (wf_node_float(n, "clip", 0) == 0)
        return WF_OK;
    return wf_fail(err, WF_UNSUPPORTED, "leave clip out, or the kept activations",
                   "clip is set, and activations that were kept do not tell where it cut");
}

/* Outputs behind those: activations [dirs, steps, batch, gates hidden], and [dirs, steps, batch,
 * hidden]. With clip, WF_UNSUPPORTED: they do not tell where it cut. */
static wf_status infer_kept(wf_node *n, uint32_t n_states, wf_err *err)
{
    const wf_value *x = n->in[0], *r = n->in[2];
    bool batch_first = wf_node_int(n, "layout", 0) != 0;
    wf_axis axes[4];

    WF_TRY(check_clip(n, err));
    for (uint32_t i = 0; i < 2; i++) {
        wf_out_unknown(n, n_states + 1 + i, x->dtype);
        if (x->rank < 0 || r->rank < 0)
            continue;
        axes[0] = r->axes[0];
        axes[1] = x->axes[batch_first ? 1 : 0];
        axes[2] = x->axes[batch_first ? 0 : 1];
        axes[3] = r->axes[1 + i];
        wf_out_axes(n, n_states + 1 + i, x->dtype, 4, axes);
    }
    return WF_OK;
}

/* Outputs like the inputs from X on, without sequence_lens: dX, dW, dR, dB, dh0, ...
 * X is input x of n_in, and Y the last; W and R must be there too. What was kept may follow, both
 * of it. */
static wf_status infer_recurrent_grad(wf_node *n, uint32_t x, uint32_t n_in, wf_err *err)
{
    uint32_t out = 0;
    bool kept = n->n_in == n_in + 2;
    wf_dtype dtype;

    if ((n->n_in != n_in && !kept) || (kept && (!n->in[n_in] || !n->in[n_in + 1])) || !n->in[x] ||
        !n->in[x + 1] || !n->in[x + 2] || !n->in[n_in - 1])
        return wf_fail(
            err, WF_INVALID, NULL,
            "it takes %u inputs, of which X, W, R and Y are needed, and two that were kept", n_in);
    dtype = n->in[x]->dtype;
    if (kept)
        WF_TRY(check_clip(n, err));
    WF_TRY(wf_need_float(n, x, "X", err));
    if (n->n_in > x + LENS && n->in[x + LENS])
        WF_TRY(wf_need_int(n, x + LENS, "sequence_lens", err));
    for (uint32_t i = 0; i < n->n_in; i++)
        if (i != x + LENS && n->in[i])
            WF_TRY(wf_need_same_dtype(n, x, i, err));
    for (uint32_t i = x; i + 1 < n_in; i++) {
        if (i == x + LENS)
            continue;
        if (n->in[i])
            wf_out_like(n, out, dtype, n->in[i]);
        out++;
    }
    return WF_OK;
}

/* Emits the node op(dY, dY_h, (dY_c), inputs..., Y) and adds what it gives. `n_states` as above. */
static wf_status grad_recurrent(wf_grads *g, const wf_node *n, const char *op, uint32_t n_states)
{
    wf_emit *e = wf_grads_emit(g);
    uint32_t most = n_states == 2 ? MOST_IN : MOST_IN - 2, n_in = 0, n_out = 0;
    wf_value *in[3 + MOST_IN + 1], *out[MOST_IN - 1];
    wf_node *made;
    const wf_op *row = wf_op_find(WF_DOMAIN_WEFT, op);

    for (uint32_t i = 0; i <= n_states; i++)
        in[n_in++] = wf_grads_upstream(g, n, i);
    for (uint32_t i = 0; i < most; i++)
        in[n_in++] = wf_node_has_in(n, i) ? n->in[i] : NULL;
    in[n_in++] = wf_grads_output(g, n, 0);
    for (uint32_t i = 0, at = 0; i < most; i++) {
        if (i == LENS)
            continue;
        at++;
        if (wf_grads_wanted(g, n, i))
            n_out = at;
    }
    wf_assert(row && n_out <= row->n_out_max);
    made = wf_emit_node(e, op, n_in, in, n->n_attrs, n->attrs, n_out, out);
    if (!made)
        return wf_emit_end(e);
    for (uint32_t i = 0, at = 0; i < most; i++) {
        if (i == LENS)
            continue;
        if (at < n_out && wf_grads_wanted(g, n, i))
            WF_TRY(wf_grads_add(g, n, i, out[at]));
        else if (at < n_out && !wf_node_has_in(n, i))
            made->out[at]->producer = NULL, made->out[at] = NULL; /* nothing to be its shape */
        at++;
    }
    return WF_OK;
}

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
        return infer_recurrent(n, gates, n_states, WF_COUNT(id), id, err);                         \
    }                                                                                              \
    static wf_status grad_##id(wf_grads *g, const wf_node *n, wf_err *err)                         \
    {                                                                                              \
        (void)err;                                                                                 \
        return grad_recurrent(g, n, name_ "Grad", n_states);                                       \
    }                                                                                              \
    const wf_op wf_op_##id =                                                                       \
        WF_OPERATION(WF_DOMAIN_ONNX, name_, 14, 3, most_in, 0, 1 + (n_states), WF_OP_FOLDABLE,     \
                     infer_##id, .no_grad_in = 1u << 4, .attrs = attrs, .grad = grad_##id);

ROW(gru, "GRU", 3, 1, 6)
ROW(lstm, "LSTM", 4, 2, 8)
ROW(rnn, "RNN", 1, 1, 6)

/* ai.weft GRUKeep(X, W, R, ...) -> Y, Y_h, gates, resets: GRU that keeps its activations
 * [directions, steps, batch, 3 hidden] and, [directions, steps, batch, hidden], what gate r makes
 * of the state before (linear_before_reset: what it multiplies) for GRUGrad. LSTMKeep -> Y, Y_h,
 * Y_c, gates, cells keeps 4 hidden, and the cells after each step. Zero behind the end of a row. */
#define KEEP_ROW(id, name_, n_states, most_in, means_)                                             \
    static wf_status infer_##id##_keep(wf_graph *g, wf_node *n, wf_err *err)                       \
    {                                                                                              \
        WF_TRY(infer_##id(g, n, err));                                                             \
        return infer_kept(n, n_states, err);                                                       \
    }                                                                                              \
    const wf_op wf_op_##id##_keep =                                                                \
        WF_OPERATION(WF_DOMAIN_WEFT, name_, 1, 3, most_in, 0, 3 + (n_states), WF_OP_FOLDABLE,      \
                     infer_##id##_keep, .means = means_, .attrs = attrs);

KEEP_ROW(gru, "GRUKeep", 1, 6,
         "(X, W, R, ...) -> Y, (Y_h), gates, resets; GRU that keeps for its "
         "gradient what that would work out again: activations and what gate r "
         "gives (linear_before_reset: takes), zero behind a row's end; no clip")
KEEP_ROW(lstm, "LSTMKeep", 2, 8,
         "(X, W, R, ...) -> Y, (Y_h), (Y_c), gates, cells; LSTM that keeps for its "
         "gradient what that would work out again: activations and cells, zero "
         "behind a row's end; no clip")

/* ai.weft GRUGrad(dY, dY_h, X, W, R, B, lens, h0, Y, (gates), (resets)) -> dX, dW, dR, dB, dh0:
 * backpropagation through time. All but X, W, R and Y may be absent; with what GRUKeep kept, it is
 * not worked out again. LSTMGrad has dY_c and the inputs c0 and P too. */
#define GRAD_ROW(id, name_, n_states, n_in_, most_in, means_)                                      \
    static wf_status infer_##id##_grad(wf_graph *g, wf_node *n, wf_err *err)                       \
    {                                                                                              \
        (void)g;                                                                                   \
        return infer_recurrent_grad(n, 1 + (n_states), n_in_, err);                                \
    }                                                                                              \
    const wf_op wf_op_##id##_grad =                                                                \
        WF_OPERATION(WF_DOMAIN_WEFT, name_, 1, 0, most_in, 0, 3 + 2 * (n_states), WF_OP_FOLDABLE,  \
                     infer_##id##_grad, .means = means_, .attrs = attrs);

GRAD_ROW(gru, "GRUGrad", 1, 9, 11,
         "((dY), (dY_h), X, W, R, (B), (lens), (h0), Y, (gates), (resets)) -> dX, "
         "dW, dR, dB, dh0; GRU's attrs; any output may be left out")
GRAD_ROW(lstm, "LSTMGrad", 2, 12, 14,
         "((dY), (dY_h), (dY_c), X, W, R, (B), (lens), (h0), (c0), (P), Y, "
         "(gates), (cells)) -> dX, dW, dR, dB, dh0, dc0, dP; LSTM's attrs; any "
         "output may be left out")
GRAD_ROW(rnn, "RNNGrad", 1, 9, 9,
         "((dY), (dY_h), X, W, R, (B), (lens), (h0), Y) -> dX, dW, dR, dB, dh0; "
         "RNN's attrs; any output may be left out")
