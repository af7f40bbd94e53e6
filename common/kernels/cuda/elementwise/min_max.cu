/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/elementwise/min_max.cu - Max and Min of any number of inputs, and
 * Clip. A NaN in any input gives NaN. */
#include "common/kernels/cuda/elementwise/each.h"

#include <cmath>
#include <limits>

namespace
{

struct greater {
    template <class T> WF_CODE T operator()(T x, T y) const
    {
        return x > y || x != x ? x : y;
    }
};

struct less {
    template <class T> WF_CODE T operator()(T x, T y) const
    {
        return x < y || x != x ? x : y;
    }
};

/* Bounds are scalars; an absent one does not bound. Low above high gives high, as numpy has it. */
template <class T>
__global__ void clip(const T *x, T *y, int64_t n, const T *low, const T *high, T least, T most)
{
    const T from = low ? *low : least, to = high ? *high : most;

    for (int64_t i = wf_first(); i < n; i += wf_all()) {
        T v = x[i] < from ? from : x[i];

        y[i] = v > to ? to : v;
    }
}

template <class T>
wf_status run_clip(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                   wf_err *err)
{
    using limits = std::numeric_limits<T>;
    int64_t n = wf_elems(out[0]);

    if (n == 0)
        return WF_OK;
    return wf_launch(run, "Clip", clip<T>, wf_blocks(run, n), err,
                     static_cast<const T *>(in[0]->data), static_cast<T *>(out[0]->data), n,
                     in[1] ? static_cast<const T *>(in[1]->data) : nullptr,
                     in[2] ? static_cast<const T *>(in[2]->data) : nullptr,
                     limits::has_infinity ? -limits::infinity() : limits::lowest(),
                     limits::has_infinity ? limits::infinity() : limits::max());
}

} // namespace

#define ROW(name, dtype, T, F)                                                                     \
    {                                                                                              \
        .op = name, .dtypes = WF_TYPE(dtype), .run = wf_fold<T, F>                                 \
    }
#define ALL(name, F)                                                                               \
    ROW(name, WF_F32, float, F), ROW(name, WF_F64, double, F), ROW(name, WF_I32, int32_t, F),      \
        ROW(name, WF_I64, int64_t, F), ROW(name, WF_U8, uint8_t, F)
#define CLIP(dtype, T)                                                                             \
    {                                                                                              \
        .op = "Clip", .dtypes = WF_TYPE(dtype), .in_place = 1, .run = run_clip<T>                  \
    }

WF_CUDA_ROWS(min_max){
    ALL("Max", greater),   ALL("Min", less),      CLIP(WF_F32, float),  CLIP(WF_F64, double),
    CLIP(WF_I32, int32_t), CLIP(WF_I64, int64_t), CLIP(WF_U8, uint8_t), {},
};
