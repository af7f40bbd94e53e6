/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/elementwise/compare.c - Equal, Greater, GreaterOrEqual, Less, LessOrEqual,
 * And, Or, Xor, Not: bool results, one byte each. */
#include "common/kernels/cpu/elementwise/broadcast.h"

#define COMPARE(name, sign)                                                                        \
    WF_BINARY(name##_f32, float, uint8_t, x sign y)                                                \
    WF_BINARY(name##_f64, double, uint8_t, x sign y)                                               \
    WF_BINARY(name##_i32, int32_t, uint8_t, x sign y)                                              \
    WF_BINARY(name##_i64, int64_t, uint8_t, x sign y)                                              \
    WF_BINARY(name##_u8, uint8_t, uint8_t, x sign y)

COMPARE(equal, ==)
COMPARE(greater, >)
COMPARE(greater_or_equal, >=)
COMPARE(less, <)
COMPARE(less_or_equal, <=)
WF_BINARY(and_bool, uint8_t, uint8_t, x &&y)
WF_BINARY(or_bool, uint8_t, uint8_t, x || y)
WF_BINARY(xor_bool, uint8_t, uint8_t, !x != !y)
WF_UNARY(not_bool, uint8_t, uint8_t, !x)

#define ROW(op, dtypes, fn) WF_ROW(op, dtypes, fn, .prepare = wf_binary_prepare)
#define ROWS(op, name)                                                                             \
    ROW(op, WF_TYPE(WF_F32), name##_f32), ROW(op, WF_TYPE(WF_F64), name##_f64),                    \
        ROW(op, WF_TYPE(WF_I32), name##_i32), ROW(op, WF_TYPE(WF_I64), name##_i64),                \
        ROW(op, WF_TYPE(WF_U8), name##_u8)
#define LOGIC(op, fn) WF_ROW(op, WF_TYPE(WF_BOOL), fn, .prepare = wf_binary_prepare, .in_place = 3)

const wf_kernel wf_kernels_compare[] = {
    ROWS("Equal", equal),
    ROW("Equal", WF_TYPE(WF_BOOL), equal_u8),
    ROWS("Greater", greater),
    ROWS("GreaterOrEqual", greater_or_equal),
    ROWS("Less", less),
    ROWS("LessOrEqual", less_or_equal),
    LOGIC("And", and_bool),
    LOGIC("Or", or_bool),
    LOGIC("Xor", xor_bool),
    WF_ROW("Not", WF_TYPE(WF_BOOL), not_bool, .in_place = 1),
    {0},
};
