/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/elementwise/unary.c - Neg, Abs, Sign, Sqrt, Reciprocal, the roundings, Exp,
 * Log, Erf, and the circular and hyperbolic functions. Exp, Log and Erf of f32 are vmath.h's; the
 * rest of the transcendental ones are libm's. */
#include "common/kernels/cpu/elementwise/broadcast.h"
#include "common/kernels/cpu/vmath.h"

#include <math.h>

WF_UNARY(neg_f32, float, float, -x)
WF_UNARY(neg_f64, double, double, -x)
WF_UNARY(neg_32, uint32_t, uint32_t, 0u - x)
WF_UNARY(neg_64, uint64_t, uint64_t, 0u - x)
WF_UNARY(abs_f32, float, float, fabsf(x))
WF_UNARY(abs_f64, double, double, fabs(x))
WF_UNARY(abs_32, uint32_t, uint32_t, x >> 31 ? 0u - x : x)
WF_UNARY(abs_64, uint64_t, uint64_t, x >> 63 ? 0u - x : x)
WF_UNARY(sqrt_f32, float, float, sqrtf(x))
WF_UNARY(sqrt_f64, double, double, sqrt(x))
WF_UNARY(reciprocal_f32, float, float, 1.0f / x)
WF_UNARY(reciprocal_f64, double, double, 1.0 / x)
WF_UNARY(exp_f32, float, float, wf_exp_f32(x))
WF_UNARY(exp_f64, double, double, exp(x))
WF_UNARY(log_f32, float, float, wf_log_f32(x))
WF_UNARY(log_f64, double, double, log(x))
WF_UNARY(erf_f32, float, float, wf_erf_f32(x))
WF_UNARY(erf_f64, double, double, erf(x))

/* A NaN stays one. */
WF_UNARY(sign_f32, float, float, x > 0 ? 1 : x < 0 ? -1 : x)
WF_UNARY(sign_f64, double, double, x > 0 ? 1 : x < 0 ? -1 : x)
WF_UNARY(sign_i32, int32_t, int32_t, (x > 0) - (x < 0))
WF_UNARY(sign_i64, int64_t, int64_t, (x > 0) - (x < 0))
WF_UNARY(sign_u8, uint8_t, uint8_t, x > 0)
WF_UNARY(same_u8, uint8_t, uint8_t, x)

#define BY_LIBM(name)                                                                              \
    WF_UNARY(name##_f32, float, float, name##f(x))                                                 \
    WF_UNARY(name##_f64, double, double, name(x))
BY_LIBM(ceil)
BY_LIBM(floor)
BY_LIBM(rint) /* halves to even: the rounding mode is never changed */
BY_LIBM(sin)
BY_LIBM(cos)
BY_LIBM(tan)
BY_LIBM(asin)
BY_LIBM(acos)
BY_LIBM(atan)
BY_LIBM(sinh)
BY_LIBM(cosh)
BY_LIBM(asinh)
BY_LIBM(acosh)
BY_LIBM(atanh)

#define ROW(op, dtype, fn) WF_ROW(op, WF_TYPE(dtype), fn, .in_place = 1)
#define FLOATS(op, name) ROW(op, WF_F32, name##_f32), ROW(op, WF_F64, name##_f64)

const wf_kernel wf_kernels_unary[] = {
    ROW("Neg", WF_F32, neg_f32),
    ROW("Neg", WF_F64, neg_f64),
    ROW("Neg", WF_I32, neg_32),
    ROW("Neg", WF_I64, neg_64),
    ROW("Abs", WF_F32, abs_f32),
    ROW("Abs", WF_F64, abs_f64),
    ROW("Abs", WF_I32, abs_32),
    ROW("Abs", WF_I64, abs_64),
    ROW("Sqrt", WF_F32, sqrt_f32),
    ROW("Sqrt", WF_F64, sqrt_f64),
    ROW("Reciprocal", WF_F32, reciprocal_f32),
    ROW("Reciprocal", WF_F64, reciprocal_f64),
    ROW("Exp", WF_F32, exp_f32),
    ROW("Exp", WF_F64, exp_f64),
    ROW("Log", WF_F32, log_f32),
    ROW("Log", WF_F64, log_f64),
    FLOATS("Erf", erf),
    FLOATS("Ceil", ceil),
    FLOATS("Floor", floor),
    FLOATS("Round", rint),
    FLOATS("Sin", sin),
    FLOATS("Cos", cos),
    FLOATS("Tan", tan),
    FLOATS("Asin", asin),
    FLOATS("Acos", acos),
    FLOATS("Atan", atan),
    FLOATS("Sinh", sinh),
    FLOATS("Cosh", cosh),
    FLOATS("Asinh", asinh),
    FLOATS("Acosh", acosh),
    FLOATS("Atanh", atanh),
    FLOATS("Sign", sign),
    ROW("Sign", WF_I32, sign_i32),
    ROW("Sign", WF_I64, sign_i64),
    ROW("Sign", WF_U8, sign_u8),
    ROW("Abs", WF_U8, same_u8),
    {0},
};
