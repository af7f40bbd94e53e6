/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/norm/moments.h - mean and variance of what the threads of a block share. */
#ifndef WF_KERNELS_CUDA_MOMENTS_H
#define WF_KERNELS_CUDA_MOMENTS_H

#include "common/kernels/cuda/memory.h"
#include "common/kernels/cuda/narrow.h"

#include <cmath>

/* Two sums that are taken together. */
struct wf_two {
    double a, b;
};

/* The sums over a block's threads, which all get. */
WF_CODE wf_two wf_join_two(wf_two mine)
{
    mine.a = wf_join_block(mine.a, 0.0, wf_plus());
    mine.b = wf_join_block(mine.b, 0.0, wf_plus());
    return mine;
}

/* Adds x - shift and its square: about one of the elements, so that a large mean costs no digits.
 */
WF_CODE wf_two wf_add_moment(wf_two sums, double x, double shift)
{
    return {sums.a + (x - shift), sums.b + (x - shift) * (x - shift)};
}

/* Mean (a) and variance (b) from the sums of n elements. */
WF_CODE wf_two wf_moments_end(wf_two sums, double shift, int64_t n)
{
    double d = sums.a / (double)n, variance = sums.b / (double)n - d * d;

    return {shift + d, variance < 0 ? 0 : variance}; /* by rounding; a NaN stays */
}

/* Mean and variance of x[n], a wf_from of any type, to all threads of the block. */
template <class X> WF_CODE wf_two wf_moments(X x, int64_t n)
{
    double shift = n ? (double)x[0] : 0;
    wf_two sums = {0, 0};

    for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        sums = wf_add_moment(sums, (double)x[i], shift);
    return wf_moments_end(wf_join_two(sums), shift, n);
}

#endif
