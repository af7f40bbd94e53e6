/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/reduce/total.h - the sum of a function of 0, 1, ... n - 1: blocks sum chunks
 * of it into the workspace, and one block sums these, in an order that n alone decides. */
#ifndef WF_KERNELS_CUDA_TOTAL_H
#define WF_KERNELS_CUDA_TOTAL_H

#include "common/kernels/cuda/nn/softmax.h"

enum { WF_CHUNK = 4096 };

static inline int64_t wf_chunks(int64_t n)
{
    return (n + WF_CHUNK - 1) / WF_CHUNK;
}

template <class A, class F> __global__ void wf_sum_chunks(F f, int64_t n, A *sums)
{
    for (int64_t chunk = blockIdx.x; chunk < (n + WF_CHUNK - 1) / WF_CHUNK; chunk += gridDim.x) {
        int64_t end = (chunk + 1) * WF_CHUNK < n ? (chunk + 1) * WF_CHUNK : n;
        A sum = 0;

        for (int64_t i = chunk * WF_CHUNK + threadIdx.x; i < end; i += blockDim.x)
            sum += f(i);
        sum = wf_join_block(sum, A(0), wf_plus());
        if (threadIdx.x == 0)
            sums[chunk] = sum;
    }
}

template <class A, class T> __global__ void wf_sum_sums(const A *sums, int64_t n, T *out, A parts)
{
    A sum = 0;

    for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        sum += sums[i];
    sum = wf_join_block(sum, A(0), wf_plus());
    if (threadIdx.x == 0)
        *out = (T)(sum / parts);
}

/* Bytes of workspace for a total in As. */
template <class A> size_t wf_total_bytes(int64_t n)
{
    return (size_t)wf_chunks(n) * sizeof(A);
}

/* sums[wf_chunks(n)] = the sums of chunks of f(i), an A. */
template <class A, class F>
wf_status wf_total_chunks(const wf_run *run, F f, int64_t n, A *sums, wf_err *err)
{
    if (n == 0)
        return WF_OK;
    return wf_launch_meeting(run, run->node->op->name, wf_sum_chunks<A, F>,
                             wf_blocks(run, wf_chunks(n) * WF_BLOCK), WF_BLOCK, err, f, n, sums);
}

/* *out = the sum of all n, divided by `parts`. */
template <class A, class T>
wf_status wf_total(const wf_run *run, const A *sums, int64_t n, T *out, A parts, wf_err *err)
{
    return wf_launch_meeting(run, "total", wf_sum_sums<A, T>, 1, wf_threads(wf_chunks(n)), err,
                             sums, wf_chunks(n), out, parts);
}

#endif
