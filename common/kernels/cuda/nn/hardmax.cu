/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/nn/hardmax.cu - Hardmax: 1 at the first largest element along the axis, 0
 * elsewhere. A block computes row after row. */
#include "common/kernels/cuda/memory.h"
#include "common/kernels/cuda/nn/softmax.h"

namespace
{

template <class T> __global__ void hardmax_rows(const T *x, T *y, wf_around a)
{
    const T least = -T(INFINITY);

    for (int64_t row = blockIdx.x; row < a.outer * a.inner; row += gridDim.x) {
        const int64_t at = wf_first_class(a, row);
        const T first = x[at];
        int64_t best = a.axis;
        T top = least;

        /* No element is larger than a NaN that comes first, and a later one is never taken. */
        for (int64_t i = threadIdx.x; i < a.axis; i += blockDim.x)
            top = wf_greater()(x[at + i * a.inner], top);
        top = wf_join_block(top, least, wf_greater());
        for (int64_t i = threadIdx.x; i < a.axis; i += blockDim.x)
            if (x[at + i * a.inner] == top)
                best = wf_lower()(best, i);
        best = wf_join_block(best, a.axis, wf_lower());
        if (first != first)
            best = 0;
        for (int64_t i = threadIdx.x; i < a.axis; i += blockDim.x)
            y[at + i * a.inner] = i == best ? T(1) : T(0);
    }
}

template <class T>
wf_status hardmax(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                  wf_err *err)
{
    wf_around a = wf_around_axis(in[0], wf_node_int(run->node, "axis", -1));

    if (wf_elems(out[0]) == 0)
        return WF_OK;
    return wf_launch_meeting(run, "Hardmax", hardmax_rows<T>, wf_blocks_of_rows(run, a),
                             wf_threads(a.axis), err, wf_in<T>(in[0]), wf_out<T>(out[0]), a);
}

} // namespace

WF_CUDA_ROWS(hardmax){
    {.op = "Hardmax", .dtypes = WF_TYPE(WF_F32), .run = hardmax<float>},
    {.op = "Hardmax", .dtypes = WF_TYPE(WF_F64), .run = hardmax<double>},
    {},
};
