/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/product/split.h - values of float32 as sums of three of bfloat16, for products
 * in tiles with the accuracy of float32 (Henry, Tang & Heinecke, "Leveraging the bfloat16
 * Artificial Intelligence Datatype For Higher-Precision Computations", ARITH 2019):
 *
 *     x = x0 + x1 + x2    x0 = bf16(x), x1 = bf16(x - x0), x2 = bf16(x - x0 - x1)
 *     x y = x0 y0 + x0 y1 + x1 y0 + x1 y1 + x0 y2 + x2 y0    and less than 2^-25 |x y|
 *
 * Tiles take subnormal numbers as 0, so what a value below 2^-108 loses is up to 2^-127 of it.
 */
#ifndef WF_KERNELS_CPU_SPLIT_H
#define WF_KERNELS_CPU_SPLIT_H

#include "common/kernels/cpu/product/tiles.h"

enum { WF_PIECES = 3 }; /* of a value */

/* The bits of 2^127: from there on a value may round to infinity, and has no pieces. */
#define WF_SPLIT_END 0x7f000000u

/* wf_tiles_pack of f32, into three tiles behind each other for each that it makes, in which values
 * i and 16 + i along k are a pair. Whether all have pieces: false for those of 2^127 and more,
 * infinities and NaN. */
bool wf_split_pack(const float *x, int64_t row, wf_along along, bool for_b, int64_t outer,
                   int64_t k, void *to, int64_t panel);

/* One block of sums, of 1 or 2 tiles each way, of what wf_split_pack made: c = A's times B's over
 * all steps. The caller stands between wf_tiles_begin and wf_tiles_end, on a processor with AMX. */
typedef struct wf_split {
    const void *a, *b;
    int64_t a_next, b_next; /* bytes to the panel below, and at the right */
    int64_t steps;          /* tiles along k */
    int rows, columns;      /* tiles: 1 or 2 */
    float *c;
    int64_t c_row; /* floats */
} wf_split;
void wf_split_multiply(const wf_split *t);

#endif
