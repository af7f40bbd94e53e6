/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/elementwise/bitwise.cu - BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot,
 * BitShift, of integers. A shift by the width of the type or more leaves 0 (to the right, of a
 * negative number, -1). */
#include "common/kernels/cuda/elementwise/each.h"

#include <cstring>
#include <type_traits>

namespace
{

struct common_bits {
    template <class T> WF_CODE T operator()(T x, T y) const
    {
        return x & y;
    }
};

struct all_bits {
    template <class T> WF_CODE T operator()(T x, T y) const
    {
        return x | y;
    }
};

struct other_bits {
    template <class T> WF_CODE T operator()(T x, T y) const
    {
        return x ^ y;
    }
};

struct opposite {
    template <class T> WF_CODE T operator()(T x) const
    {
        return ~x;
    }
};

template <class T> WF_CODE bool is_wide(T y)
{
    return (std::make_unsigned_t<T>)y >= 8 * sizeof y;
}

struct left {
    template <class T> WF_CODE T operator()(T x, T y) const
    {
        using U = std::make_unsigned_t<T>;

        return is_wide(y) ? T(0) : (T)((U)x << (U)y);
    }
};

struct right {
    template <class T> WF_CODE T operator()(T x, T y) const
    {
        return is_wide(y) ? (T)(x >> (8 * sizeof x - 1) >> 1) : (T)(x >> y);
    }
};

template <class T>
wf_status shift(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    return std::strcmp(wf_node_string(run->node, "direction", ""), "LEFT") == 0
               ? wf_both<T, T, left>(run, in, out, err)
               : wf_both<T, T, right>(run, in, out, err);
}

} // namespace

#define ROW(name, dtype, fn)                                                                       \
    {                                                                                              \
        .op = name, .dtypes = WF_TYPE(dtype), .in_place = 3, .run = fn                             \
    }
#define ROWS(name, F)                                                                              \
    ROW(name, WF_I32, (wf_both<int32_t, int32_t, F>)),                                             \
        ROW(name, WF_I64, (wf_both<int64_t, int64_t, F>)),                                         \
        ROW(name, WF_U8, (wf_both<uint8_t, uint8_t, F>))
#define NOT(dtype, T)                                                                              \
    {                                                                                              \
        .op = "BitwiseNot", .dtypes = WF_TYPE(dtype), .in_place = 1,                               \
        .run = wf_each<T, T, opposite>                                                             \
    }

WF_CUDA_ROWS(bitwise){
    ROWS("BitwiseAnd", common_bits),
    ROWS("BitwiseOr", all_bits),
    ROWS("BitwiseXor", other_bits),
    ROW("BitShift", WF_I32, shift<int32_t>),
    ROW("BitShift", WF_I64, shift<int64_t>),
    ROW("BitShift", WF_U8, shift<uint8_t>),
    NOT(WF_I32, int32_t),
    NOT(WF_I64, int64_t),
    NOT(WF_U8, uint8_t),
    {},
};
