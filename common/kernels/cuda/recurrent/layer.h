/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/recurrent/layer.h - one direction of LSTM, GRU or RNN, as its kernels get it:
 * where each array begins, and the elements of a step. */
#ifndef WF_KERNELS_CUDA_LAYER_H
#define WF_KERNELS_CUDA_LAYER_H

#include "common/kernels/cuda/elementwise/number.h"
extern "C" {
#include "common/kernels/shape/recurrent.h"
}

/* Gates lie one behind the other in ONNX's order (LSTM i o f c; GRU z r h). Arrays that nobody
 * wants are NULL. Of a GRU whose gate h comes after a product with the others (wf_recurrent_two),
 * gates z and r are the early ones; of all other kinds every gate is. */
template <class T> struct wf_layer {
    int64_t steps, batch, hidden, gates, early, dirs, dir;
    bool batch_first, reverse, relu;
    T limit;          /* of what activations take; infinite when there is none */
    wf_numbers lens;  /* [batch] */
    const T *bias;    /* [2 gates hidden] */
    const T *peep;    /* LSTM: [3 hidden], of i o f */
    const T *h0, *c0; /* as in the node */

    bool stores;         /* activations are wanted */
    T *activations;      /* [steps batch, gates hidden]: the input's part at first */
    T *slope;            /* the same of their derivatives; without it the activations tell them */
    T *beside;           /* LSTM: the cells after a step; GRU: what goes through gate h of R, or,
                          * linear, comes from it; [steps batch, hidden] */
    int64_t beside_step; /* elements from one step of it to the next; 0: they share memory */
    T *h, *cell;         /* [batch, hidden]: the last state */
    const T *one;        /* [batch, early hidden]: the part of the last state */
    const T *late;       /* [batch, hidden]: the same of gate h */
    T *y, *yh, *yc;      /* as in the node */

    const T *dy, *dyh, *dyc, *of_y; /* as in the node */
    T *before;                      /* [steps batch, hidden]: the state before each step */
    T *dearly;                      /* [steps batch, early hidden]: d loss / d input of gates */
    T *dlate;                       /* [steps batch, hidden]: the same of gate h */
    T *drecurrent;                  /* GRU, linear: as dearly, for the recurrent part */
    T *dh, *dc;                     /* [batch, hidden]: of the state after; then before */
    const T *dreset;                /* [batch, hidden]: d loss / d what went through gate h of R */
    T *dh0, *dc0;                   /* as in the node */
};

/* Where a thread is: element i of row b at time t. */
struct wf_spot {
    int64_t b, i, t, row, len;
};

/* A length that cannot be, of which the wait tells, is 0 here. */
template <class T> WF_CODE int64_t wf_length(const wf_layer<T> &l, int64_t b)
{
    int64_t len = l.lens.data ? wf_int_of(l.lens, b) : l.steps;

    return len < 0 || len > l.steps ? 0 : len;
}

/* Of element e of [batch, hidden]. Numbers of 32 bits are divided in a fraction of the time that 64
 * take. */
template <class T> WF_CODE wf_spot wf_spot_of(const wf_layer<T> &l, int64_t t, int64_t e)
{
    const int64_t b =
        l.batch * l.hidden <= UINT32_MAX ? (uint32_t)e / (uint32_t)l.hidden : e / l.hidden;

    return {b, e - b * l.hidden, t, t * l.batch + b, wf_length(l, b)};
}

WF_CODE bool wf_is_inside(const wf_spot &at)
{
    return at.t < at.len;
}

/* The place of gate k in [steps batch, gates hidden], or of early gates alone. */
template <class T> WF_CODE int64_t wf_gate_at(const wf_layer<T> &l, const wf_spot &at, int k)
{
    return (at.row * l.gates + k) * l.hidden + at.i;
}

template <class T> WF_CODE int64_t wf_early_at(const wf_layer<T> &l, const wf_spot &at, int k)
{
    return (at.row * l.early + k) * l.hidden + at.i;
}

template <class T> WF_CODE int64_t wf_row_at(const wf_layer<T> &l, const wf_spot &at)
{
    return at.row * l.hidden + at.i;
}

template <class T> WF_CODE int64_t wf_beside_at(const wf_layer<T> &l, const wf_spot &at, int64_t t)
{
    return t * l.beside_step + at.b * l.hidden + at.i;
}

/* In a state [dirs, batch, hidden], or batch first. */
template <class T> WF_CODE int64_t wf_state_at(const wf_layer<T> &l, const wf_spot &at)
{
    int64_t row = l.batch_first ? at.b * l.dirs + l.dir : l.dir * l.batch + at.b;

    return row * l.hidden + at.i;
}

/* In Y [steps, dirs, batch, hidden], or [batch, steps, dirs, hidden]. */
template <class T> WF_CODE int64_t wf_y_at(const wf_layer<T> &l, const wf_spot &at, int64_t t)
{
    int64_t row = l.batch_first ? (at.b * l.steps + t) * l.dirs + l.dir
                                : (t * l.dirs + l.dir) * l.batch + at.b;

    return row * l.hidden + at.i;
}

/* The first row whose length cannot be. */
static __global__ void wf_look_at_lens(wf_numbers lens, int64_t batch, int64_t steps,
                                       wf_complaints c)
{
    int64_t bad = batch;

    for (int64_t b = threadIdx.x; b < batch; b += blockDim.x)
        if (wf_int_of(lens, b) < 0 || wf_int_of(lens, b) > steps)
            bad = wf_lower()(bad, b);
    bad = wf_join_block(bad, batch, wf_lower());
    if (threadIdx.x == 0 && bad < batch)
        wf_complain(c, WF_CUDA_BAD_LENGTH, bad, wf_int_of(lens, bad), steps);
}

/* The initial states. */
template <class T> __global__ void wf_begin_states(wf_layer<T> l)
{
    for (int64_t e = wf_first(); e < l.batch * l.hidden; e += wf_all()) {
        wf_spot at = wf_spot_of(l, 0, e);

        l.h[e] = l.h0 ? l.h0[wf_state_at(l, at)] : T(0);
        if (l.cell)
            l.cell[e] = l.c0 ? l.c0[wf_state_at(l, at)] : T(0);
    }
}

template <class T> __global__ void wf_end_states(wf_layer<T> l)
{
    for (int64_t e = wf_first(); e < l.batch * l.hidden; e += wf_all()) {
        wf_spot at = wf_spot_of(l, 0, e);

        if (l.yh)
            l.yh[wf_state_at(l, at)] = l.h[e];
        if (l.yc)
            l.yc[wf_state_at(l, at)] = l.cell[e];
    }
}

/* The gradients of the last states. */
template <class T> __global__ void wf_begin_back(wf_layer<T> l)
{
    for (int64_t e = wf_first(); e < l.batch * l.hidden; e += wf_all()) {
        wf_spot at = wf_spot_of(l, 0, e);

        l.dh[e] = l.dyh ? l.dyh[wf_state_at(l, at)] : T(0);
        if (l.dc)
            l.dc[e] = l.dyc ? l.dyc[wf_state_at(l, at)] : T(0);
    }
}

template <class T> __global__ void wf_end_back(wf_layer<T> l)
{
    for (int64_t e = wf_first(); e < l.batch * l.hidden; e += wf_all()) {
        wf_spot at = wf_spot_of(l, 0, e);

        if (l.dh0)
            l.dh0[wf_state_at(l, at)] = l.dh[e];
        if (l.dc0)
            l.dc0[wf_state_at(l, at)] = l.dc[e];
    }
}

#endif
