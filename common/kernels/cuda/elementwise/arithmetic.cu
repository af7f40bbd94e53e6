/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/elementwise/arithmetic.cu - Add, Sub, Mul and Div with broadcasting, with the
 * results of the cpu's file of that name. */
#include "common/kernels/cuda/elementwise/each.h"

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

} // namespace

#define ROW(name, dtype, T, F)                                                                     \
    {                                                                                              \
        .op = name, .dtypes = WF_TYPE(dtype), .in_place = 3, .run = wf_both<T, T, F>               \
    }
#define FLOATS(name, F) ROW(name, WF_F32, float, F), ROW(name, WF_F64, double, F)
#define ALL(name, F)                                                                               \
    FLOATS(name, F), ROW(name, WF_I32, uint32_t, F), ROW(name, WF_I64, uint64_t, F),               \
        ROW(name, WF_U8, uint8_t, F)

/* Integers wrap, so they are added and multiplied unsigned. */
WF_CUDA_ROWS(arithmetic){
    ALL("Add", sum),
    ALL("Sub", difference),
    ALL("Mul", product),
    FLOATS("Div", quotient),
    ROW("Div", WF_I32, int32_t, whole_quotient<uint32_t>),
    ROW("Div", WF_I64, int64_t, whole_quotient<uint64_t>),
    ROW("Div", WF_U8, uint8_t, byte_quotient),
    {},
};
