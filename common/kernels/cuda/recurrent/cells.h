/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/recurrent/cells.h - one step of RNN, GRU and LSTM, forward and back: a thread
 * computes all gates of element e of [batch, hidden] at time t. The products are steps.h's and
 * recurrent.cu's. */
#ifndef WF_KERNELS_CUDA_CELLS_H
#define WF_KERNELS_CUDA_CELLS_H

#include "common/kernels/cuda/recurrent/layer.h"

#include <cmath>

/* ---- forward ---- */

/* An activation, and its derivative: 0 where the limit cut the input. */
template <class T> struct wf_activation {
    T y, slope;
};

template <class T> WF_CODE T wf_limited(T x, T limit)
{
    return x > limit ? limit : x < -limit ? -limit : x;
}

template <class T> WF_CODE wf_activation<T> wf_gate_sigmoid(T x, T limit)
{
    T cut = wf_limited(x, limit), y = T(1) / (T(1) + std::exp(-cut));

    return {y, cut == x ? y * (T(1) - y) : T(0)};
}

template <class T> WF_CODE wf_activation<T> wf_gate_tanh(T x, T limit)
{
    T cut = wf_limited(x, limit), y = std::tanh(cut);

    return {y, cut == x ? T(1) - y * y : T(0)};
}

/* Keeps gate k, as far as it is wanted. */
template <class T>
WF_CODE T wf_put_gate(const wf_layer<T> &l, const wf_spot &at, int k, const wf_activation<T> &a)
{
    if (l.stores)
        l.activations[wf_gate_at(l, at, k)] = a.y;
    if (l.slope)
        l.slope[wf_gate_at(l, at, k)] = a.slope;
    return a.y;
}

/* The input's part of gate k, with the biases that are only added. */
template <class T> WF_CODE T wf_gate_input(const wf_layer<T> &l, const wf_spot &at, int k)
{
    T x = l.activations[wf_gate_at(l, at, k)];

    return l.bias ? x + (l.bias[k * l.hidden + at.i] + l.bias[(l.gates + k) * l.hidden + at.i]) : x;
}

/* And the last state's part. */
template <class T> WF_CODE T wf_gate_sum(const wf_layer<T> &l, const wf_spot &at, int k)
{
    return wf_gate_input(l, at, k) + l.one[(at.b * l.early + k) * l.hidden + at.i];
}

template <class T>
WF_CODE void wf_put_state(const wf_layer<T> &l, const wf_spot &at, int64_t e, T state)
{
    l.h[e] = state;
    if (l.y)
        l.y[wf_y_at(l, at, at.t)] = state;
}

/* Behind a row's end the state stays, and what others read is 0. */
template <class T> WF_CODE void wf_skip(const wf_layer<T> &l, const wf_spot &at)
{
    for (int k = 0; l.stores && k < l.gates; k++)
        l.activations[wf_gate_at(l, at, k)] = T(0);
    if (l.beside)
        l.beside[wf_beside_at(l, at, at.t)] = T(0);
    if (l.y)
        l.y[wf_y_at(l, at, at.t)] = T(0);
}

struct wf_rnn_step {
    template <class T> WF_CODE void operator()(const wf_layer<T> &l, int64_t t, int64_t e) const
    {
        wf_spot at = wf_spot_of(l, t, e);

        if (!wf_is_inside(at)) {
            wf_skip(l, at);
            return;
        }
        T x = wf_gate_sum(l, at, 0);
        wf_activation<T> relu = {x > T(0) ? (x < l.limit ? x : l.limit) : T(0),
                                 x > T(0) && x <= l.limit ? T(1) : T(0)};

        wf_put_state(l, at, e, wf_put_gate(l, at, 0, l.relu ? relu : wf_gate_tanh(x, l.limit)));
    }
};

template <class T> WF_CODE T wf_peep(const wf_layer<T> &l, const wf_spot &at, int k, T cell)
{
    return l.peep ? l.peep[k * l.hidden + at.i] * cell : T(0);
}

struct wf_lstm_step {
    template <class T> WF_CODE void operator()(const wf_layer<T> &l, int64_t t, int64_t e) const
    {
        wf_spot at = wf_spot_of(l, t, e);

        if (!wf_is_inside(at)) {
            wf_skip(l, at);
            return;
        }
        /* All reads come before the first write: they are on their way together. */
        T before = l.cell[e], of_in = wf_gate_sum(l, at, 0), of_out = wf_gate_sum(l, at, 1);
        T of_forget = wf_gate_sum(l, at, 2), of_fresh = wf_gate_sum(l, at, 3);
        T in = wf_put_gate(l, at, 0, wf_gate_sigmoid(of_in + wf_peep(l, at, 0, before), l.limit));
        T forget =
            wf_put_gate(l, at, 2, wf_gate_sigmoid(of_forget + wf_peep(l, at, 2, before), l.limit));
        T fresh = wf_put_gate(l, at, 3, wf_gate_tanh(of_fresh, l.limit));
        T cell = forget * before + in * fresh;
        T out = wf_put_gate(l, at, 1, wf_gate_sigmoid(of_out + wf_peep(l, at, 1, cell), l.limit));

        l.cell[e] = cell;
        if (l.beside)
            l.beside[wf_beside_at(l, at, t)] = cell;
        wf_put_state(l, at, e, out * std::tanh(wf_limited(cell, l.limit)));
    }
};

/* linear_before_reset 1. */
struct wf_gru_step {
    template <class T> WF_CODE void operator()(const wf_layer<T> &l, int64_t t, int64_t e) const
    {
        wf_spot at = wf_spot_of(l, t, e);

        if (!wf_is_inside(at)) {
            wf_skip(l, at);
            return;
        }
        T z = wf_put_gate(l, at, 0, wf_gate_sigmoid(wf_gate_sum(l, at, 0), l.limit));
        T r = wf_put_gate(l, at, 1, wf_gate_sigmoid(wf_gate_sum(l, at, 1), l.limit));
        T x = l.activations[wf_gate_at(l, at, 2)], kept = l.one[(at.b * 3 + 2) * l.hidden + at.i];

        if (l.bias) {
            x += l.bias[2 * l.hidden + at.i];
            kept += l.bias[5 * l.hidden + at.i];
        }
        if (l.beside)
            l.beside[wf_beside_at(l, at, t)] = kept;
        T fresh = wf_put_gate(l, at, 2, wf_gate_tanh(x + r * kept, l.limit));

        wf_put_state(l, at, e, (T(1) - z) * fresh + z * l.h[e]);
    }
};

/* 0, in two parts: z, r and what goes through gate h of R; then the rest. */
struct wf_gru_early_step {
    template <class T> WF_CODE void operator()(const wf_layer<T> &l, int64_t t, int64_t e) const
    {
        wf_spot at = wf_spot_of(l, t, e);

        if (!wf_is_inside(at)) {
            wf_skip(l, at);
            return;
        }
        wf_put_gate(l, at, 0, wf_gate_sigmoid(wf_gate_sum(l, at, 0), l.limit));
        T r = wf_put_gate(l, at, 1, wf_gate_sigmoid(wf_gate_sum(l, at, 1), l.limit));

        l.beside[wf_beside_at(l, at, t)] = r * l.h[e];
    }
};

struct wf_gru_late_step {
    template <class T> WF_CODE void operator()(const wf_layer<T> &l, int64_t t, int64_t e) const
    {
        wf_spot at = wf_spot_of(l, t, e);

        if (!wf_is_inside(at))
            return;
        T z = l.activations[wf_gate_at(l, at, 0)];
        T fresh = wf_put_gate(l, at, 2, wf_gate_tanh(wf_gate_input(l, at, 2) + l.late[e], l.limit));

        wf_put_state(l, at, e, (T(1) - z) * fresh + z * l.h[e]);
    }
};

/* ---- back: dh becomes what goes straight to the state before; the product by R is added ---- */

template <class T> WF_CODE T wf_gate(const wf_layer<T> &l, const wf_spot &at, int k)
{
    return l.activations[wf_gate_at(l, at, k)];
}

/* The derivative of gate k: kept because of the limit, or told by the activation. */
template <class T> WF_CODE T wf_slope_sigmoid(const wf_layer<T> &l, const wf_spot &at, int k)
{
    T y = wf_gate(l, at, k);

    return l.slope ? l.slope[wf_gate_at(l, at, k)] : y * (T(1) - y);
}

template <class T> WF_CODE T wf_slope_tanh(const wf_layer<T> &l, const wf_spot &at, int k)
{
    T y = wf_gate(l, at, k);

    return l.slope ? l.slope[wf_gate_at(l, at, k)] : T(1) - y * y;
}

/* The state before, which is kept for dR. */
template <class T> WF_CODE T wf_put_before(const wf_layer<T> &l, const wf_spot &at, int64_t e)
{
    int64_t from = wf_recurrent_earlier(l.reverse, at.t, at.len);
    T state = from >= 0 ? l.of_y[wf_y_at(l, at, from)] : l.h[e];

    l.before[wf_row_at(l, at)] = state;
    return state;
}

/* Nothing comes from behind a row's end. */
template <class T> WF_CODE void wf_skip_back(const wf_layer<T> &l, const wf_spot &at)
{
    l.before[wf_row_at(l, at)] = T(0);
    for (int k = 0; k < l.early; k++) {
        l.dearly[wf_early_at(l, at, k)] = T(0);
        if (l.drecurrent)
            l.drecurrent[wf_early_at(l, at, k)] = T(0);
    }
    if (l.dlate)
        l.dlate[wf_row_at(l, at)] = T(0);
}

template <class T> WF_CODE T wf_dstate(const wf_layer<T> &l, const wf_spot &at, int64_t e)
{
    return l.dy ? l.dh[e] + l.dy[wf_y_at(l, at, at.t)] : l.dh[e];
}

/* Without activations, which Y are then. */
template <class T> WF_CODE T wf_rnn_slope(const wf_layer<T> &l, const wf_spot &at)
{
    if (l.slope)
        return l.slope[wf_gate_at(l, at, 0)];
    T y = l.of_y[wf_y_at(l, at, at.t)];

    return l.relu ? (y > T(0) ? T(1) : T(0)) : T(1) - y * y;
}

struct wf_rnn_back {
    template <class T> WF_CODE void operator()(const wf_layer<T> &l, int64_t t, int64_t e) const
    {
        wf_spot at = wf_spot_of(l, t, e);

        if (!wf_is_inside(at)) {
            wf_skip_back(l, at);
            return;
        }
        wf_put_before(l, at, e);
        l.dearly[wf_early_at(l, at, 0)] = wf_dstate(l, at, e) * wf_rnn_slope(l, at);
        l.dh[e] = T(0);
    }
};

/* The cell before a step, in a row that is at it. */
template <class T> WF_CODE T wf_cell_before(const wf_layer<T> &l, const wf_spot &at)
{
    int64_t from = wf_recurrent_earlier(l.reverse, at.t, at.len);

    return from >= 0 ? l.beside[wf_beside_at(l, at, from)] : l.cell[at.b * l.hidden + at.i];
}

struct wf_lstm_back {
    template <class T> WF_CODE void operator()(const wf_layer<T> &l, int64_t t, int64_t e) const
    {
        wf_spot at = wf_spot_of(l, t, e);

        if (!wf_is_inside(at)) {
            wf_skip_back(l, at);
            return;
        }
        T dh = wf_dstate(l, at, e), in = wf_gate(l, at, 0), out = wf_gate(l, at, 1);
        T forget = wf_gate(l, at, 2), fresh = wf_gate(l, at, 3);
        wf_activation<T> of_cell = wf_gate_tanh(l.beside[wf_beside_at(l, at, t)], l.limit);
        T dout = dh * of_cell.y * wf_slope_sigmoid(l, at, 1);
        T dcell = l.dc[e] + dh * out * of_cell.slope + wf_peep(l, at, 1, dout);
        T din = dcell * fresh * wf_slope_sigmoid(l, at, 0);
        T dforget = dcell * wf_cell_before(l, at) * wf_slope_sigmoid(l, at, 2);

        wf_put_before(l, at, e);
        l.dearly[wf_early_at(l, at, 0)] = din;
        l.dearly[wf_early_at(l, at, 1)] = dout;
        l.dearly[wf_early_at(l, at, 2)] = dforget;
        l.dearly[wf_early_at(l, at, 3)] = dcell * in * wf_slope_tanh(l, at, 3);
        l.dc[e] = dcell * forget + wf_peep(l, at, 0, din) + wf_peep(l, at, 2, dforget);
        l.dh[e] = T(0);
    }
};

/* linear_before_reset 1. */
struct wf_gru_back {
    template <class T> WF_CODE void operator()(const wf_layer<T> &l, int64_t t, int64_t e) const
    {
        wf_spot at = wf_spot_of(l, t, e);

        if (!wf_is_inside(at)) {
            wf_skip_back(l, at);
            return;
        }
        T dh = wf_dstate(l, at, e), z = wf_gate(l, at, 0), before = wf_put_before(l, at, e);
        T dz = dh * (before - wf_gate(l, at, 2)) * wf_slope_sigmoid(l, at, 0);
        T dfresh = dh * (T(1) - z) * wf_slope_tanh(l, at, 2);
        T dr = dfresh * l.beside[wf_beside_at(l, at, t)] * wf_slope_sigmoid(l, at, 1);

        l.dearly[wf_early_at(l, at, 0)] = l.drecurrent[wf_early_at(l, at, 0)] = dz;
        l.dearly[wf_early_at(l, at, 1)] = l.drecurrent[wf_early_at(l, at, 1)] = dr;
        l.dearly[wf_early_at(l, at, 2)] = dfresh;
        l.drecurrent[wf_early_at(l, at, 2)] = dfresh * wf_gate(l, at, 1);
        l.dh[e] = dh * z;
    }
};

/* 0, in two parts: gate h and z; then, with dreset worked out from gate h, gate r. */
struct wf_gru_late_back {
    template <class T> WF_CODE void operator()(const wf_layer<T> &l, int64_t t, int64_t e) const
    {
        wf_spot at = wf_spot_of(l, t, e);

        if (!wf_is_inside(at)) {
            wf_skip_back(l, at);
            return;
        }
        T dh = wf_dstate(l, at, e), z = wf_gate(l, at, 0), before = wf_put_before(l, at, e);

        l.dlate[wf_row_at(l, at)] = dh * (T(1) - z) * wf_slope_tanh(l, at, 2);
        l.dearly[wf_early_at(l, at, 0)] =
            dh * (before - wf_gate(l, at, 2)) * wf_slope_sigmoid(l, at, 0);
        l.dh[e] = dh * z;
    }
};

struct wf_gru_early_back {
    template <class T> WF_CODE void operator()(const wf_layer<T> &l, int64_t t, int64_t e) const
    {
        wf_spot at = wf_spot_of(l, t, e);

        if (!wf_is_inside(at))
            return;
        l.dearly[wf_early_at(l, at, 1)] =
            l.dreset[e] * l.before[wf_row_at(l, at)] * wf_slope_sigmoid(l, at, 1);
        l.dh[e] += l.dreset[e] * wf_gate(l, at, 1);
    }
};

#endif
