/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/norm/rows.h - passes over stretches of elements that lie together, as the
 * normalisations are made of. Sums are taken in 16 lanes and blocks of 4096, which are added up in
 * double, so that rounding does not grow with the length. */
#ifndef WF_KERNELS_CPU_ROWS_H
#define WF_KERNELS_CPU_ROWS_H

#include <stdint.h>

#define WF_ROWS(T, suffix)                                                                         \
    /* sums[0] += sum(x - shift), sums[1] += sum((x - shift)^2) */                                 \
    void wf_moments_##suffix(const T *x, T shift, int64_t n, double sums[2]);                      \
    /* sums[0] += sum(dy), sums[1] += sum(dy (x - shift)) */                                       \
    void wf_grad_sums_##suffix(const T *dy, const T *x, T shift, int64_t n, double sums[2]);       \
    /* y = a x + b; y may be x */                                                                  \
    void wf_affine_##suffix(const T *x, T a, T b, T *y, int64_t n);                                \
    /* dx = a dy + b x + c; dx may be dy or x */                                                   \
    void wf_blend_##suffix(const T *dy, const T *x, T a, T b, T c, T *dx, int64_t n);
WF_ROWS(float, f32)
WF_ROWS(double, f64)
#undef WF_ROWS

#endif
