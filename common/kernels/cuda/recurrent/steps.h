/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/recurrent/steps.h - all steps of a direction by one kernel. Rows of a batch
 * know nothing of each other, so a block takes a few of them from the first step to the last, and
 * needs no other block: a step costs no launch, and R is read from the caches. That is fast while R
 * fits there, and while there is a processor for each few rows; larger layers take a product and a
 * kernel for each step.
 */
#ifndef WF_KERNELS_CUDA_RECURRENT_STEPS_H
#define WF_KERNELS_CUDA_RECURRENT_STEPS_H

#include "common/kernels/cuda/fours.h"
#include "common/kernels/cuda/recurrent/cells.h"
extern "C" {
#include "common/kernels/cuda/recurrent/plan.h"
}

enum {
    WF_STEPS_THREADS = 512,
    /* Numbers of the sums that its threads have: four columns each, of all rows. */
    WF_STEPS_SUMS = WF_STEPS_THREADS * 4 * WF_STEPS_ROWS,
    WF_STEPS_HELD = 16 /* rows of four columns that a thread holds: half of its registers */
};

/* Times that a loop over rows of a matrix is unrolled: so many reads are on their way. */
#ifdef __CUDACC__
#define WF_STEPS_UNROLL _Pragma("unroll 8")
#else
#define WF_STEPS_UNROLL
#endif

/* What the threads of a block share, in arrays S: its rows of a [batch, columns], all rows of a
 * column beside each other; rows that are not there are 0. */
template <class S> WF_CODE void wf_steps_share(const float *from, int columns, int rows, S to)
{
    for (int row = 0; row < WF_STEPS_ROWS; row++)
        for (int i = threadIdx.x; i < columns; i += blockDim.x)
            to[i * WF_STEPS_ROWS + row] = row < rows ? from[row * columns + i] : 0;
}

/* A thread's part of products by m [depth, columns]; columns are a multiple of 4. It adds up four
 * columns over a part of the depth, of which it holds the first rows in registers from step to
 * step, if no thread has more than four columns: m is too large for the cache that is nearest. */
struct wf_steps_part {
    const float *m;
    int depth, columns, fours, parts, four, part, begin, end, held;
    wf_four<float> rows[WF_STEPS_HELD];
};

WF_CODE wf_steps_part wf_steps_part_of(const float *m, int depth, int columns)
{
    wf_steps_part p;

    p.m = m;
    p.depth = depth;
    p.columns = columns;
    p.fours = columns / 4;
    p.parts = WF_MIN(WF_MAX((int)blockDim.x / p.fours, 1), depth);
    p.four = threadIdx.x % p.fours;
    p.part = threadIdx.x / p.fours;
    p.begin = depth * p.part / p.parts;
    p.end = p.part < p.parts ? depth * (p.part + 1) / p.parts : p.begin;
    p.held = p.fours <= (int)blockDim.x ? WF_MIN(p.end - p.begin, (int)WF_STEPS_HELD) : 0;
    WF_UNROLL
    for (int k = 0; k < WF_STEPS_HELD; k++)
        if (k < p.held)
            p.rows[k] = wf_load_four(m + (int64_t)(p.begin + k) * columns, 4 * p.four);
    return p;
}

/* sums += row k of the matrix, four columns of it, times the shared rows' elements k. */
template <class S>
WF_CODE void wf_steps_add(float (&sums)[WF_STEPS_ROWS][4], const wf_four<float> &x, S shared, int k)
{
    WF_UNROLL
    for (int row = 0; row < WF_STEPS_ROWS; row++) {
        const float y = shared[k * WF_STEPS_ROWS + row];

        WF_UNROLL
        for (int i = 0; i < 4; i++)
            sums[row][i] += y * x.v[i];
    }
}

/* Calls put(row, column, sum) for the shared [rows, depth] times the matrix; the parts are joined
 * in their order. */
template <class S, class F>
WF_CODE void wf_steps_multiply(const wf_steps_part &p, int rows, S shared, S joined, F put)
{
    for (int four = p.four; p.part < p.parts && four < p.fours; four += blockDim.x) {
        const float *at = p.m + (int64_t)(p.begin + p.held) * p.columns + 4 * four;
        float sums[WF_STEPS_ROWS][4] = {};

        WF_UNROLL
        for (int k = 0; k < WF_STEPS_HELD; k++)
            if (k < p.held)
                wf_steps_add(sums, p.rows[k], shared, p.begin + k);
        WF_STEPS_UNROLL
        for (int k = p.begin + p.held; k < p.end; k++, at += p.columns)
            wf_steps_add(sums, wf_load_four(at, 0), shared, k);
        for (int row = 0; row < WF_STEPS_ROWS; row++)
            for (int i = 0; i < 4; i++)
                joined[(p.part * WF_STEPS_ROWS + row) * p.columns + 4 * four + i] = sums[row][i];
    }
    __syncthreads();
    for (int row = 0; row < rows; row++)
        for (int c = threadIdx.x; c < p.columns; c += blockDim.x) {
            float all = 0;

            for (int i = 0; i < p.parts; i++)
                all += joined[(i * WF_STEPS_ROWS + row) * p.columns + c];
            put(row, c, all);
        }
}

/* Cell is a step of cells.h; `turned` [hidden, n]: R's transpose; one: l.one, which it writes. */
template <class Cell>
__global__ void __launch_bounds__(WF_STEPS_THREADS)
    wf_all_steps(wf_layer<float> l, const float *turned, float *one, Cell cell)
{
    WF_SHARED(float, shared, WF_STEPS_HIDDEN *WF_STEPS_ROWS);
    WF_SHARED(float, joined, WF_STEPS_SUMS);
    const int64_t first = (int64_t)blockIdx.x * WF_STEPS_ROWS, from = first * l.hidden;
    const int rows = (int)WF_MIN(l.batch - first, (int64_t)WF_STEPS_ROWS);
    const int hidden = (int)l.hidden, n = (int)(l.early * l.hidden);
    const wf_steps_part part = wf_steps_part_of(turned, hidden, n);
    float *const to = one + first * n;

    for (int64_t i = 0; i < l.steps; i++) {
        wf_steps_share(l.h + from, hidden, rows, shared);
        __syncthreads();
        wf_steps_multiply(part, rows, shared, joined,
                          [&](int row, int c, float sum) { to[row * n + c] = sum; });
        __syncthreads();
        for (int e = threadIdx.x; e < rows * hidden; e += blockDim.x)
            cell(l, l.reverse ? l.steps - 1 - i : i, from + e);
        __syncthreads();
    }
}

/* From the last step to the first; d: what R [n, hidden] is multiplied by, dearly or drecurrent. */
template <class Cell>
__global__ void __launch_bounds__(WF_STEPS_THREADS)
    wf_all_steps_back(wf_layer<float> l, const float *r, const float *d, Cell cell)
{
    WF_SHARED(float, shared, WF_STEPS_GATES *WF_STEPS_ROWS);
    WF_SHARED(float, joined, WF_STEPS_SUMS);
    const int64_t first = (int64_t)blockIdx.x * WF_STEPS_ROWS, from = first * l.hidden;
    const int rows = (int)WF_MIN(l.batch - first, (int64_t)WF_STEPS_ROWS);
    const int hidden = (int)l.hidden, n = (int)(l.early * l.hidden);
    const wf_steps_part part = wf_steps_part_of(r, n, hidden);
    float *const dh = l.dh + from;

    for (int64_t i = l.steps; i-- > 0;) {
        const int64_t t = l.reverse ? l.steps - 1 - i : i;

        for (int e = threadIdx.x; e < rows * hidden; e += blockDim.x)
            cell(l, t, from + e);
        __syncthreads();
        wf_steps_share(d + (t * l.batch + first) * n, n, rows, shared);
        __syncthreads();
        wf_steps_multiply(part, rows, shared, joined,
                          [&](int row, int c, float sum) { dh[row * hidden + c] += sum; });
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
