/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/norm/rows.c */
#include "common/kernels/cpu/norm/rows.h"
#include "common/base/cc.h"
#include "common/base/size.h"
#include "common/kernels/cpu/lanes.h"

enum { BLOCK = 4096 };

#define ROWS(T, suffix)                                                                            \
    WF_MULTIVERSION static void moments_##suffix(const T *x, T shift, int64_t n, double sums[2])   \
    {                                                                                              \
        wf_lanes_##suffix sum = {0}, square = {0}, v;                                              \
        T more = 0, squares = 0;                                                                   \
        int64_t i = 0;                                                                             \
                                                                                                   \
        for (; i + WF_LANES <= n; i += WF_LANES) {                                                 \
            memcpy(&v, x + i, sizeof v);                                                           \
            v -= shift;                                                                            \
            sum += v;                                                                              \
            square += v * v;                                                                       \
        }                                                                                          \
        for (; i < n; i++) {                                                                       \
            T one = x[i] - shift;                                                                  \
                                                                                                   \
            more += one;                                                                           \
            squares += one * one;                                                                  \
        }                                                                                          \
        sums[0] += (double)(wf_lanes_sum_##suffix(&sum) + more);                                   \
        sums[1] += (double)(wf_lanes_sum_##suffix(&square) + squares);                             \
    }                                                                                              \
    void wf_moments_##suffix(const T *x, T shift, int64_t n, double sums[2])                       \
    {                                                                                              \
        for (int64_t at = 0; at < n; at += BLOCK)                                                  \
            moments_##suffix(x + at, shift, WF_MIN(n - at, (int64_t)BLOCK), sums);                 \
    }                                                                                              \
    WF_MULTIVERSION static void grad_##suffix(const T *dy, const T *x, T shift, int64_t n,         \
                                              double sums[2])                                      \
    {                                                                                              \
        wf_lanes_##suffix sum = {0}, with = {0}, g, v;                                             \
        T more = 0, more_with = 0;                                                                 \
        int64_t i = 0;                                                                             \
                                                                                                   \
        for (; i + WF_LANES <= n; i += WF_LANES) {                                                 \
            memcpy(&g, dy + i, sizeof g);                                                          \
            memcpy(&v, x + i, sizeof v);                                                           \
            sum += g;                                                                              \
            with += g * (v - shift);                                                               \
        }                                                                                          \
        for (; i < n; i++) {                                                                       \
            more += dy[i];                                                                         \
            more_with += dy[i] * (x[i] - shift);                                                   \
        }                                                                                          \
        sums[0] += (double)(wf_lanes_sum_##suffix(&sum) + more);                                   \
        sums[1] += (double)(wf_lanes_sum_##suffix(&with) + more_with);                             \
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
