/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/elementwise/arithmetic.cu - Add, Sub, Mul, Div and Mod with broadcasting, and
 * Sum and Mean of any number of inputs, with the results of the cpu's file of that name. */
#include "common/kernels/cuda/elementwise/each.h"

#include <cmath>

namespace
{

struct sum {
    template <class T> WF_CODE T operator()(T x, T y) const
    {
        return (T)(x + y);
    }
};

struct difference {
    template <class T> WF_CODE T operator()(T x, T y) const
    {
        return (T)(x - y);
    }
};

struct product {
    template <class T> WF_CODE T operator()(T x, T y) const
    {
        return (T)(x * y);
    }
};

struct quotient {
    template <class T> WF_CODE T operator()(T x, T y) const
    {
        return x / y;
    }
};

/* By zero it gives 0, and wraps where the quotient does not fit. */
template <class U> struct whole_quotient {
    template <class T> WF_CODE T operator()(T x, T y) const
    {
        return y == 0 ? T(0) : y == T(-1) ? (T)(U(0) - (U)x) : (T)(x / y);
    }
};

struct byte_quotient {
    WF_CODE uint8_t operator()(uint8_t x, uint8_t y) const
    {
        return y == 0 ? 0 : (uint8_t)(x / y);
    }
};

/* What % leaves has the sign of the dividend. A divisor of 0 gives 0, and -1 is kept from %, whose
 * quotient might not fit. */
template <class T> WF_CODE T cut_rest(T x, T y)
{
    return y == 0 || y == T(-1) ? T(0) : (T)(x % y);
}

WF_CODE float cut_rest(float x, float y)
{
    return std::fmod(x, y);
}

WF_CODE double cut_rest(double x, double y)
{
    return std::fmod(x, y);
}

struct rest {
    template <class T> WF_CODE T operator()(T x, T y) const
    {
        return cut_rest(x, y);
    }
};

/* Moved to the sign of the divisor. */
struct floored_rest {
    template <class T> WF_CODE T operator()(T x, T y) const
    {
        T r = cut_rest(x, y);

        return r != T(0) && (r < T(0)) != (y < T(0)) ? (T)(r + y) : r;
    }
};

struct byte_rest {
    WF_CODE uint8_t operator()(uint8_t x, uint8_t y) const
    {
        return y == 0 ? 0 : (uint8_t)(x % y);
    }
};

template <class T>
wf_status mod(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    return wf_node_int(run->node, "fmod", 0) ? wf_both<T, T, rest>(run, in, out, err)
                                             : wf_both<T, T, floored_rest>(run, in, out, err);
}

template <class T> __global__ void divide(T *y, int64_t elems, T n)
{
    for (int64_t i = wf_first(); i < elems; i += wf_all())
        y[i] /= n;
}

template <class T>
wf_status mean(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    int64_t elems = wf_elems(out[0]);

    WF_TRY((wf_fold<T, sum>(run, in, out, err)));
    if (elems == 0)
        return WF_OK;
    return wf_launch(run, "Mean", divide<T>, wf_blocks(run, elems), err,
                     static_cast<T *>(out[0]->data), elems, (T)run->node->n_in);
}

} // namespace

#define ROW(name, dtype, T, F)                                                                     \
    {                                                                                              \
        .op = name, .dtypes = WF_TYPE(dtype), .in_place = 3, .run = wf_both<T, T, F>               \
    }
#define FLOATS(name, F)                                                                            \
    {.op = name,                                                                                   \
     .dtypes = WF_TYPE(WF_F32),                                                                    \
     .in_place = 3,                                                                                \
     .is_narrow = true,                                                                            \
     .run = wf_wide_or_narrow<wf_both<float, float, F>, wf_both<wf_narrow, wf_narrow, F>>},        \
        ROW(name, WF_F64, double, F)
#define ALL(name, F)                                                                               \
    FLOATS(name, F), ROW(name, WF_I32, uint32_t, F), ROW(name, WF_I64, uint64_t, F),               \
        ROW(name, WF_U8, uint8_t, F)

#define MOD(dtype, fn)                                                                             \
    {                                                                                              \
        .op = "Mod", .dtypes = WF_TYPE(dtype), .in_place = 3, .run = fn                            \
    }
#define MANY(name, dtype, fn)                                                                      \
    {                                                                                              \
        .op = name, .dtypes = WF_TYPE(dtype), .run = fn                                            \
    }

/* Integers wrap, so they are added and multiplied unsigned. */
WF_CUDA_ROWS(arithmetic){
    ALL("Add", sum),
    ALL("Sub", difference),
    ALL("Mul", product),
    FLOATS("Div", quotient),
    ROW("Div", WF_I32, int32_t, whole_quotient<uint32_t>),
    ROW("Div", WF_I64, int64_t, whole_quotient<uint64_t>),
    ROW("Div", WF_U8, uint8_t, byte_quotient),
    MOD(WF_F32, mod<float>),
    MOD(WF_F64, mod<double>),
    MOD(WF_I32, mod<int32_t>),
    MOD(WF_I64, mod<int64_t>),
    ROW("Mod", WF_U8, uint8_t, byte_rest),
    MANY("Sum", WF_F32, (wf_fold<float, sum>)),
    MANY("Sum", WF_F64, (wf_fold<double, sum>)),
    MANY("Mean", WF_F32, mean<float>),
    MANY("Mean", WF_F64, mean<double>),
    {},
};
