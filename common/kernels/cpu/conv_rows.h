/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/conv_rows.h - convolutions in bfloat16 as one matrix product over all pixels
 * of a batch: for maps so small that oneDNN's convolutions, which go by rows of a map, leave most
 * of a tile empty.
 *
 * A row is a pixel: images [images in, c], maps [images out, m], columns [images out, taps c],
 * whose taps lie outside and channels inside, so that a tap is one copy. Weights are [m, taps c]
 * likewise.
 */
#ifndef WF_KERNELS_CPU_CONV_ROWS_H
#define WF_KERNELS_CPU_CONV_ROWS_H

#include "common/kernels/cpu/onednn_conv.h"
#include "common/kernels/kernel.h"

typedef struct wf_conv_rows wf_conv_rows;

/* s->images is the batch. *out is NULL where there is no fast way; asks `prep` for its workspace.
 * Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_conv_rows_prepare(wf_prep *prep, const wf_onednn_conv_shape *s,
                                           wf_conv_rows **out, wf_err *err);
/* Gives back what it holds beside the plan's arena; NULL is fine. */
void wf_conv_rows_release(wf_conv_rows *v);
/* Of x [images, c, in], w [m, c, taps] and y [images, m, out] the one is made that `way` makes. */
void wf_conv_rows_go(const wf_conv_rows *v, const wf_run *run, float *x, float *w, float *y);

#endif
