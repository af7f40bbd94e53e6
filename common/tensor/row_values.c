/* SPDX-License-Identifier: Apache-2.0 */
/* common/tensor/row_values.c */
#include "common/tensor/row_values.h"
#include "common/tensor/halves.h"

#include <string.h>

void wf_row_values_read(wf_dtype d, const void *from, const float *scale, uint64_t n, float out[])
{
    if (d == WF_BF16)
        wf_f32_of_bf16s(from, n, out);
    else if (d == WF_F16)
        wf_f32_of_f16s(from, n, out);
    else if (d == WF_I8)
        wf_f32_of_int8s(from, n, *scale, out);
    else
        memcpy(out, from, n * sizeof *out);
}

/* Infinity, which rounding to nearest may give, to the number before it. */
static void saturate(uint16_t h[], uint64_t n, uint16_t infinite)
{
    for (uint64_t i = 0; i < n; i++)
        h[i] = (uint16_t)(h[i] - ((h[i] & 0x7FFFu) == infinite));
}

void wf_row_values_round(wf_dtype d, const float from[], uint64_t n, void *to, float *scale)
{
    if (d == WF_BF16) {
        wf_bf16_of_f32s(from, n, to);
        saturate(to, n, 0x7F80);
    } else if (d == WF_F16) {
        wf_f16_of_f32s(from, n, to);
        saturate(to, n, 0x7C00);
    } else if (d == WF_I8) {
        *scale = wf_int8_scale(from, n);
        wf_int8_of_f32s(from, n, *scale, to);
    } else {
        memcpy(to, from, n * sizeof *from);
    }
}

void wf_row_values_draw(wf_dtype d, const float from[], uint64_t n, wf_draw draw, uint64_t first,
                        void *to, float *scale)
{
    if (d == WF_BF16) {
        wf_bf16_stochastic(from, n, draw, (uint32_t)first, to);
    } else if (d == WF_F16) {
        wf_f16_stochastic(from, n, draw, (uint32_t)first, to);
    } else if (d == WF_I8) {
        *scale = wf_int8_scale(from, n);
        wf_int8_stochastic(from, n, draw, *scale, to);
    } else {
        memcpy(to, from, n * sizeof *from);
    }
}

void wf_row_values_draw_halves(wf_dtype d, const float from[], uint64_t rows, uint64_t row,
                               const wf_draw draws[], uint16_t to[])
{
    if (d == WF_BF16)
        wf_bf16_stochastic_rows(from, rows, row, draws, to);
    else
        wf_f16_stochastic_rows(from, rows, row, draws, to);
}
