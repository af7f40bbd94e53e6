/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/shape/range.cu - Range(start, limit, delta): start + i delta. How many there
 * are is known from the shape. */
#include "common/kernels/cuda/code.h"

namespace
{

/* Computed in U: integers wrap as unsigned ones do. */
template <class T, class U> __global__ void fill(const T *start, const T *delta, T *out, int64_t n)
{
    const U from = (U)*start, step = (U)*delta;

    for (int64_t i = wf_first(); i < n; i += wf_all())
        out[i] = (T)(from + (U)i * step);
}

template <class T, class U>
wf_status range(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    int64_t n = wf_elems(out[0]);

    if (n == 0)
        return WF_OK;
    return wf_launch(run, "Range", fill<T, U>, wf_blocks(run, n), err,
                     static_cast<const T *>(in[0]->data), static_cast<const T *>(in[2]->data),
                     static_cast<T *>(out[0]->data), n);
}

} // namespace

#define ROW(dtype, T, U)                                                                           \
    {                                                                                              \
        .op = "Range", .dtypes = WF_TYPE(dtype), .run = range<T, U>                                \
    }

WF_CUDA_ROWS(range){
    ROW(WF_F32, float, double),
    ROW(WF_F64, double, double),
    ROW(WF_I32, int32_t, uint32_t),
    ROW(WF_I64, int64_t, uint64_t),
    {},
};
