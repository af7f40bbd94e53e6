/* SPDX-License-Identifier: Apache-2.0 */
/* common/tensor/stochastic.h - float32 to fewer bits by stochastic rounding: x goes up or down to
 * one of its two neighbours, to either with a probability that makes the mean of the result x
 * (Gupta et al. 2015, "Deep Learning with Limited Numerical Precision", section 2.2). Updates that
 * are smaller than half a step of the type are so kept on average, where rounding to nearest would
 * lose each of them.
 *
 * The random bits of element i are a hash of i and of what the caller draws for: no generator has a
 * state, and the same draw gives the same bits on every processor, in any order, on any thread.
 *
 * int8 is symmetric: x / scale, where the scale is the largest magnitude of a row / 127.
 */
#ifndef WF_TENSOR_STOCHASTIC_H
#define WF_TENSOR_STOCHASTIC_H

#include <stddef.h>
#include <stdint.h>

enum {
    WF_INT8_ROW_MOST = 2048 /* elements that share a scale: all are known when one is rounded */
};

/* What random bits are drawn for: one row at one update. */
typedef struct wf_draw {
    uint32_t a, b;
} wf_draw;

/* The draw of 64 bits that are well mixed (wf_rng_fold). */
static inline wf_draw wf_draw_of(uint64_t mixed)
{
    return (wf_draw){(uint32_t)mixed, (uint32_t)(mixed >> 32)};
}

/* All of [n], whose first element has number `first` of the draw; the arrays do not overlap. What
 * is beyond the type's range becomes its largest number; NaN stays NaN. */
void wf_bf16_stochastic(const float *from, size_t n, wf_draw draw, uint32_t first, uint16_t *to);
void wf_f16_stochastic(const float *from, size_t n, wf_draw draw, uint32_t first, uint16_t *to);
/* The same of whole rows of `row` elements side by side, each with a draw of its own: a call costs
 * as much as a short row. */
void wf_bf16_stochastic_rows(const float *from, size_t rows, size_t row, const wf_draw draws[],
                             uint16_t *to);
void wf_f16_stochastic_rows(const float *from, size_t rows, size_t row, const wf_draw draws[],
                            uint16_t *to);

/* The scale of a row: 0 if no number of it is above 2^-100 in magnitude, NaN if one is NaN; the
 * largest finite number stands for infinity. */
float wf_int8_scale(const float *from, size_t n);
/* By such a scale; every number is 0 if the scale is 0 or NaN. */
void wf_int8_stochastic(const float *from, size_t n, wf_draw draw, float scale, int8_t *to);
/* To the nearest, of two the even one. */
void wf_int8_of_f32s(const float *from, size_t n, float scale, int8_t *to);
void wf_f32_of_int8s(const int8_t *from, size_t n, float scale, float *to);

#endif
