/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/nn/softmax.h - the kernel of Softmax and LogSoftmax, for those who stand on
 * it: a block computes row after row, its threads the classes of it. */
#ifndef WF_KERNELS_CUDA_SOFTMAX_H
#define WF_KERNELS_CUDA_SOFTMAX_H

#include "common/kernels/cuda/code.h"
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

/* Blocks for its rows. */
static inline unsigned wf_blocks_of_rows(const wf_run *run, const wf_around &a)
{
    return wf_blocks(run, a.outer * a.inner * WF_BLOCK);
}

/* y = softmax of x along the axis, or its logarithm; neither is empty. */
template <class T, bool LOGARITHM>
wf_status wf_softmax(const wf_run *run, const void *x, void *y, const wf_around &a, wf_err *err)
{
    return wf_launch_meeting(run, run->node->op->name, wf_softmax_rows<T, LOGARITHM>,
                             wf_blocks_of_rows(run, a), wf_threads(a.axis), err,
                             static_cast<const T *>(x), static_cast<T *>(y), a);
}

#endif
