/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/pairs.h - MaxPool over 2 by 2 at strides of 2, what most networks have, by
 * rows of pairs: four elements are read once, and no element is read twice.
 *
 * A plane x [2 h or more, width], y and dy [h, w] with 2 w at most width; what lies behind the last
 * pair has no part in y.
 */
#ifndef WF_KERNELS_CPU_PAIRS_H
#define WF_KERNELS_CPU_PAIRS_H

#include <stdint.h>

typedef struct wf_pairs {
    int64_t height, width; /* of x */
    int64_t h, w;          /* of y */
} wf_pairs;

/* The largest of each four; a NaN among them stays. */
void wf_pairs_max_f32(const wf_pairs *p, const float *x, float *y);
/* dy to the first of each four that equals y, zeros elsewhere. */
void wf_pairs_max_grad_f32(const wf_pairs *p, const float *x, const float *y, const float *dy,
                           float *dx);

/* The same of x and y in bfloat16. */
void wf_pairs_max_bf16(const wf_pairs *p, const uint16_t *x, uint16_t *y);
void wf_pairs_max_grad_bf16(const wf_pairs *p, const uint16_t *x, const uint16_t *y,
                            const float *dy, float *dx);

#endif
