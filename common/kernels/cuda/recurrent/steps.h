/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/recurrent/steps.h - all steps of a direction by one kernel. Rows of a batch
 * know nothing of each other, so a block takes a few of them from the first step to the last, and
 * needs no other block: a step costs no launch, and R is read from the caches. That is fast while R
 * fits there, and while there is a processor for each few rows; larger layers take a product and a
 * kernel for each step.
 */
#ifndef WF_KERNELS_CUDA_RECURRENT_STEPS_H
#define WF_KERNELS_CUDA_RECURRENT_STEPS_H

#include "common/kernels/cuda/recurrent/cells.h"
extern "C" {
#include "common/kernels/cuda/recurrent/plan.h"
}

enum {
    WF_STEPS_THREADS = 512,
    WF_STEPS_PARTS = WF_STEPS_THREADS / WF_WARP /* of a sum, at most: a unit has a warp at least */
};

/* Times that a loop over a row or column of R is unrolled: so many reads are on their way. */
#ifdef __CUDACC__
#define WF_STEPS_UNROLL _Pragma("unroll 16")
#else
#define WF_STEPS_UNROLL
#endif

/* What the threads of a block share, in arrays S: its rows of a [batch, columns], all rows of a
 * column beside each other; rows that are not there are 0. */
template <class S>
WF_CODE void wf_steps_share(const float *from, int64_t columns, int64_t rows, S to)
{
    for (int64_t i = threadIdx.x; i < columns * WF_STEPS_ROWS; i += blockDim.x) {
        int64_t row = i % WF_STEPS_ROWS;

        to[i] = row < rows ? from[row * columns + i / WF_STEPS_ROWS] : 0;
    }
}

/* one [rows, n] = the shared states times `turned` [hidden, n], R's transpose. */
template <class S>
WF_CODE void wf_steps_multiply(const wf_layer<float> &l, const float *turned, S shared,
                               int64_t rows, float *one)
{
    const int64_t n = l.early * l.hidden;

    for (int64_t c = threadIdx.x; c < n; c += blockDim.x) {
        float sums[WF_STEPS_ROWS] = {};

        WF_STEPS_UNROLL
        for (int64_t k = 0; k < l.hidden; k++) {
            float r = turned[k * n + c];

            for (int row = 0; row < WF_STEPS_ROWS; row++)
                sums[row] += shared[k * WF_STEPS_ROWS + row] * r;
        }
        for (int64_t row = 0; row < rows; row++)
            one[row * n + c] = sums[row];
    }
}

/* Cell is a step of cells.h. */
template <class Cell>
__global__ void wf_all_steps(wf_layer<float> l, const float *turned, float *one, Cell cell)
{
    WF_SHARED(float, shared, WF_STEPS_HIDDEN *WF_STEPS_ROWS);
    const int64_t first = (int64_t)blockIdx.x * WF_STEPS_ROWS, from = first * l.hidden;
    const int64_t rows = WF_MIN(l.batch - first, (int64_t)WF_STEPS_ROWS);

    for (int64_t i = 0; i < l.steps; i++) {
        wf_steps_share(l.h + from, l.hidden, rows, shared);
        __syncthreads();
        wf_steps_multiply(l, turned, shared, rows, one + first * l.early * l.hidden);
        __syncthreads();
        for (int64_t e = threadIdx.x; e < rows * l.hidden; e += blockDim.x)
            cell(l, l.reverse ? l.steps - 1 - i : i, from + e);
        __syncthreads();
    }
}

/* dh [rows, hidden] += the shared gradients times r [n, hidden]. `parts` threads add up a part of n
 * each for a unit of all rows, and one joins them in their order. */
template <class S>
WF_CODE void wf_steps_multiply_back(const wf_layer<float> &l, const float *r, S shared, S joined,
                                    int64_t rows, float *dh)
{
    const int64_t n = l.early * l.hidden, h = l.hidden;
    const int64_t parts = WF_MIN((int64_t)blockDim.x / h, (int64_t)WF_STEPS_PARTS);
    const int64_t part = threadIdx.x / h, unit = threadIdx.x % h;
    const int64_t begin = n * part / parts, end = n * (part + 1) / parts;
    float sums[WF_STEPS_ROWS] = {};

    if (part < parts) {
        WF_STEPS_UNROLL
        for (int64_t k = begin; k < end; k++) {
            float x = r[k * h + unit];

            for (int row = 0; row < WF_STEPS_ROWS; row++)
                sums[row] += shared[k * WF_STEPS_ROWS + row] * x;
        }
        for (int row = 0; row < WF_STEPS_ROWS; row++)
            joined[(part * WF_STEPS_ROWS + row) * h + unit] = sums[row];
    }
    __syncthreads();
    for (int64_t e = threadIdx.x; e < rows * h; e += blockDim.x) {
        float all = 0;

        for (int64_t i = 0; i < parts; i++)
            all += joined[i * WF_STEPS_ROWS * h + e];
        dh[e] += all;
    }
}

/* From the last step to the first; d: what R is multiplied by, dearly or drecurrent. */
template <class Cell>
__global__ void wf_all_steps_back(wf_layer<float> l, const float *r, const float *d, Cell cell)
{
    WF_SHARED(float, shared, WF_STEPS_GATES *WF_STEPS_ROWS);
    WF_SHARED(float, joined, (int)WF_STEPS_THREADS *(int)WF_STEPS_ROWS);
    const int64_t first = (int64_t)blockIdx.x * WF_STEPS_ROWS, from = first * l.hidden;
    const int64_t rows = WF_MIN(l.batch - first, (int64_t)WF_STEPS_ROWS), n = l.early * l.hidden;

    for (int64_t i = l.steps; i-- > 0;) {
        const int64_t t = l.reverse ? l.steps - 1 - i : i;

        for (int64_t e = threadIdx.x; e < rows * l.hidden; e += blockDim.x)
            cell(l, t, from + e);
        __syncthreads();
        wf_steps_share(d + (t * l.batch + first) * n, n, rows, shared);
        __syncthreads();
        wf_steps_multiply_back(l, r, shared, joined, rows, l.dh + from);
        __syncthreads();
    }
}

/* rows x columns -> columns x rows. */
static __global__ void wf_turn(const float *x, float *y, int64_t rows, int64_t columns)
{
    for (int64_t i = wf_first(); i < rows * columns; i += wf_all())
        y[i % columns * rows + i / columns] = x[i];
}

#endif
