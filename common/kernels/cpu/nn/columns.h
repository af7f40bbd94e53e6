/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/columns.h - images as matrices: what a convolution's window covers, tap by
 * tap, so that a matrix product does the rest (im2col), and the way back (col2im).
 *
 * A matrix has a row for each (channel, tap) and a column for each output of the rows [first, last)
 * of outputs along the last axis; row r of outputs is (d, h) = (r / out[1], r % out[1]).
 */
#ifndef WF_KERNELS_CPU_COLUMNS_H
#define WF_KERNELS_CPU_COLUMNS_H

#include "common/kernels/shape/spatial.h"
#include "common/tensor/dtype.h"

typedef struct wf_columns {
    const wf_spatial *s;
    wf_dtype dtype;      /* f32 or f64 */
    int64_t channels;    /* that lie one behind the other in the image */
    int64_t first, last; /* rows of outputs */
} wf_columns;

/* columns [channels taps, (last - first) out[2]] from image [channels, in...]; zeros where the
 * window lies outside. */
void wf_columns_of(const wf_columns *c, const void *image, void *columns);
/* Adds columns to where they come from. */
void wf_columns_add(const wf_columns *c, const void *columns, void *image);

#endif
