/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/reduce/columns.h - sums along the columns of a matrix: the warps of a block
 * take its rows in turn, and neighbouring threads neighbouring columns. The order follows from the
 * number of rows alone. */
#ifndef WF_KERNELS_CUDA_COLUMNS_H
#define WF_KERNELS_CUDA_COLUMNS_H

#include "common/kernels/cuda/code.h"

template <class T, class F>
__global__ void wf_add_columns(F f, int64_t rows, int64_t columns, T *out)
{
    WF_SHARED(double, parts, WF_BLOCK);

    for (int64_t first = (int64_t)blockIdx.x * WF_WARP; first < columns;
         first += (int64_t)gridDim.x * WF_WARP) {
        const int64_t column = first + threadIdx.x % WF_WARP;
        double sum = 0;

        for (int64_t row = threadIdx.x / WF_WARP; row < rows && column < columns; row += WF_WARPS)
            sum += (double)f(row, column);
        parts[threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.x < WF_WARP && column < columns) {
            for (unsigned warp = 1; warp < WF_WARPS; warp++)
                sum += parts[warp * WF_WARP + threadIdx.x];
            out[column] = (T)sum;
        }
        __syncthreads(); /* before the next columns are written */
    }
}

/* out[column] = the sum of f(row, column). */
template <class T, class F>
wf_status wf_sum_columns(const wf_run *run, F f, int64_t rows, int64_t columns, T *out, wf_err *err)
{
    if (columns == 0)
        return WF_OK;
    return wf_launch_meeting(run, "columns", wf_add_columns<T, F>,
                             wf_blocks(run, columns * WF_WARPS), WF_BLOCK, err, f, rows, columns,
                             out);
}

#endif
