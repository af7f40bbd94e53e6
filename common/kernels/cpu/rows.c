/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/rows.c */
#include "common/kernels/cpu/rows.h"
#include "common/base/cc.h"
#include "common/base/size.h"

enum { LANES = 16, BLOCK = 4096 };

#define ROWS(T, suffix)                                                                            \
    WF_MULTIVERSION static void moments_##suffix(const T *x, T shift, int64_t n, double sums[2])   \
    {                                                                                              \
        T sum[LANES] = {0}, square[LANES] = {0};                                                   \
        int64_t i = 0;                                                                             \
                                                                                                   \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (int k = 0; k < LANES; k++) {                                                      \
                T d = x[i + k] - shift;                                                            \
                                                                                                   \
                sum[k] += d;                                                                       \
                square[k] += d * d;                                                                \
            }                                                                                      \
        for (; i < n; i++) {                                                                       \
            T d = x[i] - shift;                                                                    \
                                                                                                   \
            sum[0] += d;                                                                           \
            square[0] += d * d;                                                                    \
        }                                                                                          \
        for (int width = LANES / 2; width > 0; width /= 2)                                         \
            for (int k = 0; k < width; k++) {                                                      \
                sum[k] += sum[k + width];                                                          \
                square[k] += square[k + width];                                                    \
            }                                                                                      \
        sums[0] += (double)sum[0];                                                                 \
        sums[1] += (double)square[0];                                                              \
    }                                                                                              \
    void wf_moments_##suffix(const T *x, T shift, int64_t n, double sums[2])                       \
    {                                                                                              \
        for (int64_t at = 0; at < n; at += BLOCK)                                                  \
            moments_##suffix(x + at, shift, WF_MIN(n - at, (int64_t)BLOCK), sums);                 \
    }                                                                                              \
    WF_MULTIVERSION static void grad_##suffix(const T *dy, const T *x, T shift, int64_t n,         \
                                              double sums[2])                                      \
    {                                                                                              \
        T sum[LANES] = {0}, with[LANES] = {0};                                                     \
        int64_t i = 0;                                                                             \
                                                                                                   \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (int k = 0; k < LANES; k++) {                                                      \
                sum[k] += dy[i + k];                                                               \
                with[k] += dy[i + k] * (x[i + k] - shift);                                         \
            }                                                                                      \
        for (; i < n; i++) {                                                                       \
            sum[0] += dy[i];                                                                       \
            with[0] += dy[i] * (x[i] - shift);                                                     \
        }                                                                                          \
        for (int width = LANES / 2; width > 0; width /= 2)                                         \
            for (int k = 0; k < width; k++) {                                                      \
                sum[k] += sum[k + width];                                                          \
                with[k] += with[k + width];                                                        \
            }                                                                                      \
        sums[0] += (double)sum[0];                                                                 \
        sums[1] += (double)with[0];                                                                \
    }                                                                                              \
    void wf_grad_sums_##suffix(const T *dy, const T *x, T shift, int64_t n, double sums[2])        \
    {                                                                                              \
        for (int64_t at = 0; at < n; at += BLOCK)                                                  \
            grad_##suffix(dy + at, x + at, shift, WF_MIN(n - at, (int64_t)BLOCK), sums);           \
    }                                                                                              \
    WF_MULTIVERSION static void affine_##suffix(const T *x, T a, T b, T *y, int64_t n)             \
    {                                                                                              \
        WF_NO_OVERLAP                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = a * x[i] + b;                                                                   \
    }                                                                                              \
    void wf_affine_##suffix(const T *x, T a, T b, T *y, int64_t n)                                 \
    {                                                                                              \
        affine_##suffix(x, a, b, y, n);                                                            \
    }                                                                                              \
    WF_MULTIVERSION static void blend_##suffix(const T *dy, const T *x, T a, T b, T c, T *dx,      \
                                               int64_t n)                                          \
    {                                                                                              \
        WF_NO_OVERLAP                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            dx[i] = a * dy[i] + b * x[i] + c;                                                      \
    }                                                                                              \
    void wf_blend_##suffix(const T *dy, const T *x, T a, T b, T c, T *dx, int64_t n)               \
    {                                                                                              \
        blend_##suffix(dy, x, a, b, c, dx, n);                                                     \
    }
ROWS(float, f32)
ROWS(double, f64)
