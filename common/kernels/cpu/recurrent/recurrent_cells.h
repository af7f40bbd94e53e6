/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/recurrent/recurrent_cells.h - one step of one row of RNN, GRU and LSTM,
 * forward and back: the elementwise part; recurrent.c does the products. Blocks of h elements;
 * gates lie one behind the other in ONNX's order (LSTM i o f c; GRU z r h). */
#ifndef WF_KERNELS_CPU_RECURRENT_CELLS_H
#define WF_KERNELS_CPU_RECURRENT_CELLS_H

#include "common/tensor/dtype.h"
#include <stdbool.h>
#include <stdint.h>

/* A row's arrays, all of the cells' dtype. Forward: gates becomes what the activations give, and
 * slope, when there, their derivative (0 where clip cut the input). Back: without slope the
 * activations tell it, which is right where there is no clip. */
typedef struct wf_cell {
    int64_t h;
    double clip;          /* 0: none */
    bool relu;            /* RNN: Relu in place of Tanh */
    void *gates;          /* [gates h]: the input's part with its bias, then the activations */
    void *recurrent;      /* [gates h]: the part of the last state */
    void *slope;          /* [gates h], or NULL */
    const void *bias_h;   /* GRU, linear: the recurrent bias of gate h, [h], or NULL */
    const void *peephole; /* LSTM: [3 h] i o f, or NULL */
    const void *before;   /* [h]: the state before */
    const void *c_before; /* LSTM: [h] */
    void *c;              /* LSTM: [h], the cell after; may be c_before */
    void *state;          /* [h]: the state after; may be before; NULL when it is not wanted */
    void *reset;          /* GRU: [h], r before: what goes through R; linear: what r multiplies */
    /* Back. */
    const void *dstate; /* [h]: d loss / d state after */
    void *dc;           /* LSTM: [h], in after, out before */
    void *dgates;       /* [gates h]: d loss / d input of the activations */
    void *drecurrent;   /* GRU, linear: [gates h], the same for the recurrent part */
    void *direct;       /* GRU: [h], what of dstate goes straight to the state before */
    const void *dreset; /* GRU, not linear: [h], d loss / d reset */
} wf_cell;

typedef void wf_cell_fn(wf_dtype dtype, const wf_cell *c);

wf_cell_fn wf_rnn_step, wf_rnn_back;
wf_cell_fn wf_lstm_step, wf_lstm_back;
/* linear_before_reset 1. */
wf_cell_fn wf_gru_step, wf_gru_back;
/* 0, in two parts: z, r and reset; then, with recurrent's gate h worked out from reset, the rest.
 * Back: gate h and z; then, with dreset worked out from gate h, gate r. */
wf_cell_fn wf_gru_reset_step, wf_gru_late_step, wf_gru_late_back, wf_gru_reset_back;

#endif
