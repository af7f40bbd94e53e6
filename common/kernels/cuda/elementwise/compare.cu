/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/elementwise/compare.cu - Equal, Greater, GreaterOrEqual, Less, LessOrEqual,
 * And, Or, Xor, Not: bool results, one byte each. */
#include "common/kernels/cuda/elementwise/each.h"

#define QUESTION(name, expression)                                                                 \
    struct name {                                                                                  \
        template <class T> WF_CODE uint8_t operator()(T x, T y) const                              \
        {                                                                                          \
            return expression;                                                                     \
        }                                                                                          \
    };

namespace
{

QUESTION(equal, x == y)
QUESTION(greater, x > y)
QUESTION(greater_or_equal, x >= y)
QUESTION(less, x < y)
QUESTION(less_or_equal, x <= y)
QUESTION(both, x &&y)
QUESTION(either, x || y)
QUESTION(one_of, !x != !y)

struct negation {
    WF_CODE uint8_t operator()(uint8_t x) const
    {
        return !x;
    }
};

} // namespace

#define ROW(name, dtype, T, F)                                                                     \
    {                                                                                              \
        .op = name, .dtypes = WF_TYPE(dtype), .run = wf_both<T, uint8_t, F>                        \
    }
#define ALL(name, F)                                                                               \
    ROW(name, WF_F32, float, F), ROW(name, WF_F64, double, F), ROW(name, WF_I32, int32_t, F),      \
        ROW(name, WF_I64, int64_t, F), ROW(name, WF_U8, uint8_t, F)
#define LOGIC(name, F)                                                                             \
    {                                                                                              \
        .op = name, .dtypes = WF_TYPE(WF_BOOL), .in_place = 3, .run = wf_both<uint8_t, uint8_t, F> \
    }

WF_CUDA_ROWS(compare){
    ALL("Equal", equal),
    ROW("Equal", WF_BOOL, uint8_t, equal),
    ALL("Greater", greater),
    ALL("GreaterOrEqual", greater_or_equal),
    ALL("Less", less),
    ALL("LessOrEqual", less_or_equal),
    LOGIC("And", both),
    LOGIC("Or", either),
    LOGIC("Xor", one_of),
    {.op = "Not",
     .dtypes = WF_TYPE(WF_BOOL),
     .in_place = 1,
     .run = wf_each<uint8_t, uint8_t, negation>},
    {},
};
