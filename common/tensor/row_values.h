/* SPDX-License-Identifier: Apache-2.0 */
/* common/tensor/row_values.h - how the values of a table's row are held: float32, or a type of
 * fewer bits.
 *
 *   float32, bfloat16, float16   an element each
 *   int8                         a byte for each element, and one float32 for the row: its scale
 *
 * Rules work on float32: a row is read, updated, and written with stochastic rounding
 * (common/tensor/stochastic.h). First values, and those that come from another type, are rounded to
 * nearest. What is beyond a type's range becomes its largest number. Slots stay float32.
 */
#ifndef WF_TENSOR_ROW_VALUES_H
#define WF_TENSOR_ROW_VALUES_H

#include "common/tensor/dtype.h"
#include "common/tensor/stochastic.h"
#include <stdbool.h>
#include <stdint.h>

/* Whether rows may be held so. */
static inline bool wf_row_values_known(wf_dtype d)
{
    return d == WF_F32 || d == WF_BF16 || d == WF_F16 || d == WF_I8;
}

/* Bytes of n elements, but for the scale. */
static inline uint64_t wf_row_values_bytes(wf_dtype d, uint64_t n)
{
    return n * (d == WF_I8 ? 1 : d == WF_F32 ? 4 : 2);
}

/* Bytes of a row of n elements with its scale, a multiple of 4. */
static inline uint64_t wf_row_values_room(wf_dtype d, uint64_t n)
{
    return (wf_row_values_bytes(d, n) + 3) / 4 * 4 + (d == WF_I8 ? sizeof(float) : 0);
}

/* Elements [n] of a row as float32; `scale` is read for int8 alone. */
void wf_row_values_read(wf_dtype d, const void *from, const float *scale, uint64_t n, float out[]);
/* The nearest, and the row's scale: n is all of the row for int8. */
void wf_row_values_round(wf_dtype d, const float from[], uint64_t n, void *to, float *scale);
/* Rounded stochastically; from[0] is element `first` of the row, which is 0 for int8. */
void wf_row_values_draw(wf_dtype d, const float from[], uint64_t n, wf_draw draw, uint64_t first,
                        void *to, float *scale);

/* Whether all elements of a row lie in 16 bits each, without a scale: rows side by side may then be
 * read at once, and drawn at once: [rows][row], each row with its draw. */
static inline bool wf_row_values_are_halves(wf_dtype d)
{
    return d == WF_BF16 || d == WF_F16;
}
void wf_row_values_draw_halves(wf_dtype d, const float from[], uint64_t rows, uint64_t row,
                               const wf_draw draws[], uint16_t to[]);

#endif
