/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/nn/softmax.h - the kernel of Softmax and LogSoftmax, for those who stand on
 * it: a block computes row after row, its threads the classes of it.
 *
 * Rows whose classes are neighbours are read once for both the largest element and the sum of
 * exponentials, which is rescaled when the largest so far grows (Milakov and Gimelshein, "Online
 * normalizer calculation for softmax", arXiv 1805.02867). */
#ifndef WF_KERNELS_CUDA_SOFTMAX_H
#define WF_KERNELS_CUDA_SOFTMAX_H

#include "common/kernels/cuda/fours.h"
extern "C" {
#include "common/kernels/shape/axes.h"
}

#include <cmath>

/* The first class of row number `row`; the next ones are `inner` elements apart. */
WF_CODE int64_t wf_first_class(const wf_around &a, int64_t row)
{
    return row / a.inner * a.axis * a.inner + row % a.inner;
}

template <class T, bool LOGARITHM> __global__ void wf_softmax_rows(const T *x, T *y, wf_around a)
{
    const T least = -T(INFINITY);

    for (int64_t row = blockIdx.x; row < a.outer * a.inner; row += gridDim.x) {
        const int64_t at = wf_first_class(a, row);
        T top = least, total = 0;

        for (int64_t i = threadIdx.x; i < a.axis; i += blockDim.x)
            top = wf_greater()(top, x[at + i * a.inner]);
        top = wf_join_block(top, least, wf_greater());
        for (int64_t i = threadIdx.x; i < a.axis; i += blockDim.x)
            total += std::exp(x[at + i * a.inner] - top);
        total = wf_join_block(total, T(0), wf_plus());
        for (int64_t i = threadIdx.x; i < a.axis; i += blockDim.x) {
            T z = x[at + i * a.inner] - top;

            y[at + i * a.inner] = LOGARITHM ? z - std::log(total) : std::exp(z) / total;
        }
    }
}

/* The largest element so far, and the sum of exponentials of all, less `base`: which is the
 * largest, or 0 while that is -infinity. A NaN makes the sum one. */
template <class T> struct wf_peak {
    T top, base, total;

    WF_CODE void grow(T x)
    {
        if (x > top) {
            total *= top > -T(INFINITY) ? std::exp(base - x) : T(1); /* else it is 0, or NaN */
            top = base = x;
        }
    }
    WF_CODE void add(T x)
    {
        grow(x);
        total += std::exp(x - base);
    }
    WF_CODE void add(const wf_four<T> &x)
    {
        grow(wf_greater()(wf_greater()(x.v[0], x.v[1]), wf_greater()(x.v[2], x.v[3])));
        WF_UNROLL
        for (int k = 0; k < 4; k++)
            total += std::exp(x.v[k] - base);
    }
};

/* Calls one(i) and four(i) for what is this thread's of a row of n elements, whose first one is
 * number `at` of a tensor: four elements from i on that may be accessed at once, and single ones.
 */
template <class O, class L, class U>
WF_CODE void wf_each_of_row(int64_t at, int64_t n, bool has_fours, O one, L load, U four)
{
    const wf_stretch s = has_fours ? wf_stretch_of(at, n) : wf_stretch{n, 0};

    for (int64_t i = threadIdx.x; i < s.head; i += blockDim.x)
        one(i);
    wf_each_ahead(
        threadIdx.x, blockDim.x, s.fours, [&](int64_t i) { return load(s.head + 4 * i); },
        [&](int64_t i, auto raw) { four(s.head + 4 * i, raw); });
    for (int64_t i = s.head + 4 * s.fours + threadIdx.x; i < n; i += blockDim.x)
        one(i);
}

/* Of a row x[n], to all threads of the block. */
template <class T> WF_CODE wf_peak<T> wf_peak_of(const T *x, int64_t at, int64_t n, bool has_fours)
{
    wf_peak<T> mine = {-T(INFINITY), 0, 0}, all = mine;

    wf_each_of_row(
        at, n, has_fours, [&](int64_t i) { mine.add(x[i]); },
        [&](int64_t i) { return wf_load_four(x, i); },
        [&](int64_t, const wf_four<T> &v) { mine.add(v); });
    all.top = wf_join_block(mine.top, -T(INFINITY), wf_greater());
    all.base = all.top > -T(INFINITY) ? all.top : T(0);
    if (mine.top > -T(INFINITY))
        mine.total *= std::exp(mine.base - all.base);
    all.total = wf_join_block(mine.total, T(0), wf_plus());
    return all;
}

/* y = softmax of a row x[n] of that peak, or its logarithm; may be in place. */
template <class T, bool LOGARITHM>
WF_CODE void wf_softmax_of(const T *x, T *y, int64_t at, int64_t n, bool has_fours,
                           const wf_peak<T> &p)
{
    const T less = std::log(p.total);
    const auto of = [&](T z) {
        return LOGARITHM ? z - p.top - less : std::exp(z - p.top) / p.total;
    };

    wf_each_of_row(
        at, n, has_fours, [&](int64_t i) { y[i] = of(x[i]); },
        [&](int64_t i) { return wf_load_four(x, i); },
        [&](int64_t i, wf_four<T> v) {
            WF_UNROLL
            for (int k = 0; k < 4; k++)
                v.v[k] = of(v.v[k]);
            wf_store_four(y, i, v);
        });
}

/* The same of rows [rows, n]. */
template <class T, bool LOGARITHM>
__global__ void __launch_bounds__(WF_LARGE_BLOCK)
    wf_softmax_lines(const T *x, T *y, int64_t rows, int64_t n, bool has_fours)
{
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const int64_t at = row * n;
        const wf_peak<T> p = wf_peak_of(x + at, at, n, has_fours);

        wf_softmax_of<T, LOGARITHM>(x + at, y + at, at, n, has_fours, p);
    }
}

/* Blocks for its rows. */
static inline unsigned wf_blocks_of_rows(const wf_run *run, const wf_around &a)
{
    return wf_blocks(run, a.outer * a.inner * WF_BLOCK);
}

/* Bytes of rows that blocks read twice while an L2 cache still has them. */
enum { WF_ROWS_IN_CACHE = 24 << 20 };

/* Blocks of that many threads for rows that each of them reads once; or twice, if `bytes`, those of
 * a row, are not 0. */
static inline unsigned wf_blocks_of_lines(const wf_run *run, int64_t rows, unsigned threads,
                                          int64_t bytes)
{
    const int64_t processors = wf_cuda_gpu_of(run->device)->has.processors;
    int64_t most = processors * WF_MIN(2 * WF_LARGE_BLOCK / threads, 16u);

    if (bytes)
        most = WF_MIN(most, WF_MAX(WF_ROWS_IN_CACHE / bytes, processors));
    return (unsigned)WF_MAX(WF_MIN(rows, most), (int64_t)1);
}

/* y = softmax of x along the axis, or its logarithm; neither is empty. */
template <class T, bool LOGARITHM>
wf_status wf_softmax(const wf_run *run, const void *x, void *y, const wf_around &a, wf_err *err)
{
    const unsigned threads = wf_large_threads(a.axis);

    if (a.inner == 1)
        return wf_launch_meeting(
            run, run->node->op->name, wf_softmax_lines<T, LOGARITHM>,
            wf_blocks_of_lines(run, a.outer, threads, a.axis * (int64_t)sizeof(T)), threads, err,
            static_cast<const T *>(x), static_cast<T *>(y), a.outer, a.axis,
            wf_fours_at(x, sizeof(T)) && wf_fours_at(y, sizeof(T)));
    return wf_launch_meeting(run, run->node->op->name, wf_softmax_rows<T, LOGARITHM>,
                             wf_blocks_of_rows(run, a), wf_threads(a.axis), err,
                             static_cast<const T *>(x), static_cast<T *>(y), a);
}

#endif
