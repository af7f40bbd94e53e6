/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/elementwise/cast.cu - Cast and CastLike, among all dtypes.
 *
 * Floats become integers by cutting; what does not fit saturates and NaN becomes 0. Integers wrap
 * into narrower ones. Anything but 0 is true. Halves go by way of f32, whatever the other side. */
#include "common/kernels/cuda/shape/move.h"
extern "C" {
#include "common/tensor/half.h"
}

#include <limits>
#include <type_traits>

namespace
{

/* Elements that are no number of C++. A bool that is read is a byte of 0 or 1. */
struct half {
    uint16_t bits;
};
struct bfloat {
    uint16_t bits;
};
struct truth {
    uint8_t byte;
};

template <class S> WF_CODE S number_of(S x)
{
    return x;
}

WF_CODE float number_of(half x)
{
    return wf_f16_to_f32_inline(x.bits);
}

WF_CODE float number_of(bfloat x)
{
    return wf_bf16_to_f32_inline(x.bits);
}

template <class D> constexpr D least = std::numeric_limits<D>::lowest();
template <class D> constexpr D most = std::numeric_limits<D>::max();

/* double holds the bounds of D exactly, but for the upper one of i64, which is the power of two
 * just above. */
template <class D> WF_CODE D cut(double x)
{
    if (!(x > (double)least<D>)) /* NaN too */
        return x != x ? D(0) : least<D>;
    return x >= (double)most<D> ? most<D> : (D)x;
}

/* An element of D for one of S. */
template <class D> struct to {
    template <class S> WF_CODE D operator()(S x) const
    {
        auto number = number_of(x);

        if constexpr (std::is_integral_v<D> && std::is_floating_point_v<decltype(number)>)
            return cut<D>((double)number);
        else
            return (D)number;
    }
};

template <> struct to<half> {
    template <class S> WF_CODE half operator()(S x) const
    {
        return {wf_f32_to_f16_inline((float)number_of(x))};
    }
};

template <> struct to<bfloat> {
    template <class S> WF_CODE bfloat operator()(S x) const
    {
        return {wf_f32_to_bf16_inline((float)number_of(x))};
    }
};

template <> struct to<truth> {
    template <class S> WF_CODE truth operator()(S x) const
    {
        return {(uint8_t)(number_of(x) != 0)};
    }
};

template <class S>
wf_status cast(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    if (in[0]->dtype == out[0]->dtype)
        return wf_copy_view(run, in, out, err);
    switch (out[0]->dtype) {
    case WF_F32:
        return wf_each<S, float, to<float>>(run, in, out, err);
    case WF_F64:
        return wf_each<S, double, to<double>>(run, in, out, err);
    case WF_I32:
        return wf_each<S, int32_t, to<int32_t>>(run, in, out, err);
    case WF_I64:
        return wf_each<S, int64_t, to<int64_t>>(run, in, out, err);
    case WF_F16:
        return wf_each<S, half, to<half>>(run, in, out, err);
    case WF_BF16:
        return wf_each<S, bfloat, to<bfloat>>(run, in, out, err);
    case WF_BOOL:
        return wf_each<S, truth, to<truth>>(run, in, out, err);
    default:
        return wf_each<S, uint8_t, to<uint8_t>>(run, in, out, err);
    }
}

} // namespace

#define ROW(name, dtype, S)                                                                        \
    {                                                                                              \
        .op = name, .dtypes = WF_TYPE(dtype), .run = cast<S>                                       \
    }
#define ALL(name)                                                                                  \
    ROW(name, WF_F32, float), ROW(name, WF_F64, double), ROW(name, WF_I32, int32_t),               \
        ROW(name, WF_I64, int64_t), ROW(name, WF_U8, uint8_t), ROW(name, WF_BOOL, uint8_t),        \
        ROW(name, WF_F16, half), ROW(name, WF_BF16, bfloat)

WF_CUDA_ROWS(cast){ALL("Cast"), ALL("CastLike"), {}};
