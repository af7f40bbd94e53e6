/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/elementwise/compare.c - Equal, Greater, GreaterOrEqual, Less, LessOrEqual,
 * And, Or, Xor, Not, IsNaN, IsInf: bool results, one byte each. */
#include "common/kernels/cpu/elementwise/broadcast.h"

#include <float.h>
#include <string.h>

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
WF_UNARY(nan_f32, float, uint8_t, x != x)
WF_UNARY(nan_f64, double, uint8_t, x != x)
WF_UNARY(positive_f32, float, uint8_t, x > FLT_MAX)
WF_UNARY(positive_f64, double, uint8_t, x > DBL_MAX)
WF_UNARY(negative_f32, float, uint8_t, x < -FLT_MAX)
WF_UNARY(negative_f64, double, uint8_t, x < -DBL_MAX)
WF_UNARY(either_f32, float, uint8_t, x > FLT_MAX || x < -FLT_MAX)
WF_UNARY(either_f64, double, uint8_t, x > DBL_MAX || x < -DBL_MAX)

#define IS_INF(type)                                                                               \
    static wf_status inf_##type(const wf_run *run, const wf_tensor *const in[],                    \
                                wf_tensor *const out[], wf_err *err)                               \
    {                                                                                              \
        bool below = wf_node_int(run->node, "detect_negative", 1) != 0;                            \
        bool above = wf_node_int(run->node, "detect_positive", 1) != 0;                            \
                                                                                                   \
        if (above)                                                                                 \
            return below ? either_##type(run, in, out, err) : positive_##type(run, in, out, err);  \
        if (below)                                                                                 \
            return negative_##type(run, in, out, err);                                             \
        if (wf_elems(out[0]))                                                                      \
            memset(out[0]->data, 0, (size_t)wf_elems(out[0]));                                     \
        return WF_OK;                                                                              \
    }
IS_INF(f32)
IS_INF(f64)

#define ROW(op, dtypes, fn) WF_ROW(op, dtypes, fn, .prepare = wf_binary_prepare)
#define ROWS(op, name)                                                                             \
    ROW(op, WF_TYPE(WF_F32), name##_f32), ROW(op, WF_TYPE(WF_F64), name##_f64),                    \
        ROW(op, WF_TYPE(WF_I32), name##_i32), ROW(op, WF_TYPE(WF_I64), name##_i64)
#define LOGIC(op, fn) WF_ROW(op, WF_TYPE(WF_BOOL), fn, .prepare = wf_binary_prepare, .in_place = 3)

const wf_kernel wf_kernels_compare[] = {
    ROWS("Equal", equal),
    ROW("Equal", WF_TYPE(WF_U8) | WF_TYPE(WF_BOOL), equal_u8),
    ROWS("Greater", greater),
    ROW("Greater", WF_TYPE(WF_U8), greater_u8),
    ROWS("GreaterOrEqual", greater_or_equal),
    ROW("GreaterOrEqual", WF_TYPE(WF_U8), greater_or_equal_u8),
    ROWS("Less", less),
    ROW("Less", WF_TYPE(WF_U8), less_u8),
    ROWS("LessOrEqual", less_or_equal),
    ROW("LessOrEqual", WF_TYPE(WF_U8), less_or_equal_u8),
    LOGIC("And", and_bool),
    LOGIC("Or", or_bool),
    LOGIC("Xor", xor_bool),
    WF_ROW("Not", WF_TYPE(WF_BOOL), not_bool, .in_place = 1),
    WF_ROW("IsNaN", WF_TYPE(WF_F32), nan_f32),
    WF_ROW("IsNaN", WF_TYPE(WF_F64), nan_f64),
    WF_ROW("IsInf", WF_TYPE(WF_F32), inf_f32),
    WF_ROW("IsInf", WF_TYPE(WF_F64), inf_f64),
    {0},
};
