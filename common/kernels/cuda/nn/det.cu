/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/nn/det.cu - Det: the product of the pivots of Gaussian elimination with row
 * exchanges, in double. A block works on one matrix after the other, in the workspace. */
#include "common/kernels/cuda/memory.h"

namespace
{

/* The row of a [n, n] from row k on that has the largest element of column k, the first of several.
 * A NaN on the diagonal stays there, and another is not taken. */
WF_CODE int64_t pivot_row(const double *a, int64_t n, int64_t k)
{
    double top = 0;
    int64_t best = n;

    for (int64_t r = k + threadIdx.x; r < n; r += blockDim.x)
        top = wf_greater()(std::fabs(a[r * n + k]), top);
    top = wf_join_block(top, 0.0, wf_greater());
    for (int64_t r = k + threadIdx.x; r < n; r += blockDim.x)
        if (std::fabs(a[r * n + k]) == top)
            best = wf_lower()(best, r);
    best = wf_join_block(best, n, wf_lower());
    return best == n || a[k * n + k] != a[k * n + k] ? k : best;
}

/* Uses up a [n, n]; all threads get it. */
WF_CODE double determinant(double *a, int64_t n)
{
    double det = 1;

    for (int64_t k = 0; k < n; k++) {
        const int64_t best = pivot_row(a, n, k), below = n - k - 1;
        const double pivot = a[best * n + k];

        det *= best == k ? pivot : -pivot;
        if (pivot == 0)
            return det;
        __syncthreads(); /* all have the pivot before it moves */
        for (int64_t c = k + threadIdx.x; c < n && best != k; c += blockDim.x) {
            double t = a[k * n + c];

            a[k * n + c] = a[best * n + c];
            a[best * n + c] = t;
        }
        __syncthreads();
        /* Column k is not read again below, so it stays as it is for the other threads. */
        for (int64_t i = threadIdx.x; i < below * below; i += blockDim.x) {
            int64_t r = k + 1 + i / below, c = k + 1 + i % below;

            a[r * n + c] -= a[r * n + k] / pivot * a[k * n + c];
        }
        __syncthreads();
    }
    return det;
}

template <class T>
__global__ void determinants(const T *x, T *y, double *room, int64_t n, int64_t count)
{
    for (int64_t i = blockIdx.x; i < count; i += gridDim.x) {
        double *a = room + i * n * n, det;

        for (int64_t k = threadIdx.x; k < n * n; k += blockDim.x)
            a[k] = (double)x[i * n * n + k];
        __syncthreads();
        det = determinant(a, n);
        if (threadIdx.x == 0)
            y[i] = (T)det;
    }
}

wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    size_t at;

    (void)out;
    return wf_take_room(prep, wf_elems(in[0]), sizeof(double), &at, err);
}

template <class T>
wf_status det(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    const int64_t n = wf_dim(in[0], -1), count = wf_elems(out[0]);

    return wf_launch_meeting(run, "Det", determinants<T>, wf_blocks(run, count * WF_BLOCK),
                             wf_threads(n * n), err, wf_in<T>(in[0]), wf_out<T>(out[0]),
                             wf_room<double>(run, 0), n, count);
}

} // namespace

WF_CUDA_ROWS(det){
    {.op = "Det", .dtypes = WF_TYPE(WF_F32), .prepare = prepare, .run = det<float>},
    {.op = "Det", .dtypes = WF_TYPE(WF_F64), .prepare = prepare, .run = det<double>},
    {},
};
