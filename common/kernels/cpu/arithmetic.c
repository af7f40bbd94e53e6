/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/arithmetic.c - Add, Sub, Mul, Div with broadcasting.
 *
 * Integers wrap as two's complement (computed unsigned, where C defines it). Integer division by
 * zero, which ONNX leaves open, gives 0 instead of ending the process.
 */
#include "common/kernels/cpu/broadcast.h"

WF_BINARY(add_f32, float, float, x + y)
WF_BINARY(add_f64, double, double, x + y)
WF_BINARY(add_32, uint32_t, uint32_t, x + y)
WF_BINARY(add_64, uint64_t, uint64_t, x + y)

WF_BINARY(sub_f32, float, float, x - y)
WF_BINARY(sub_f64, double, double, x - y)
WF_BINARY(sub_32, uint32_t, uint32_t, x - y)
WF_BINARY(sub_64, uint64_t, uint64_t, x - y)

WF_BINARY(mul_f32, float, float, x *y)
WF_BINARY(mul_f64, double, double, x *y)
WF_BINARY(mul_32, uint32_t, uint32_t, x *y)
WF_BINARY(mul_64, uint64_t, uint64_t, x *y)

WF_BINARY(div_f32, float, float, x / y)
WF_BINARY(div_f64, double, double, x / y)
WF_BINARY(div_i32, int32_t, int32_t, y == 0 ? 0 : y == -1 ? (int32_t)(0u - (uint32_t)x) : x / y)
WF_BINARY(div_i64, int64_t, int64_t, y == 0 ? 0 : y == -1 ? (int64_t)(0u - (uint64_t)x) : x / y)

#define ROW(op, dtype, fn)                                                                         \
    WF_ROW(op, WF_TYPE(dtype), fn, .prepare = wf_binary_prepare, .in_place = 3)

const wf_kernel wf_kernels_arithmetic[] = {
    ROW("Add", WF_F32, add_f32),
    ROW("Add", WF_F64, add_f64),
    ROW("Add", WF_I32, add_32),
    ROW("Add", WF_I64, add_64),
    ROW("Sub", WF_F32, sub_f32),
    ROW("Sub", WF_F64, sub_f64),
    ROW("Sub", WF_I32, sub_32),
    ROW("Sub", WF_I64, sub_64),
    ROW("Mul", WF_F32, mul_f32),
    ROW("Mul", WF_F64, mul_f64),
    ROW("Mul", WF_I32, mul_32),
    ROW("Mul", WF_I64, mul_64),
    ROW("Div", WF_F32, div_f32),
    ROW("Div", WF_F64, div_f64),
    ROW("Div", WF_I32, div_i32),
    ROW("Div", WF_I64, div_i64),
    {0},
};
