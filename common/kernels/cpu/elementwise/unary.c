/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/elementwise/unary.c - Neg, Abs, Sign, Sqrt, Reciprocal, the roundings, Exp,
 * Log, Erf, the circular and hyperbolic functions, IsInf and IsNaN. Exp, Log and Erf of f32 are
 * vmath.h's; the rest of the transcendental ones are libm's. */
#include "common/kernels/cpu/elementwise/broadcast.h"
#include "common/kernels/cpu/vmath.h"

#include <float.h>
#include <math.h>
#include <string.h>

WF_UNARY(neg_f32, float, float, -x)
WF_UNARY(neg_f64, double, double, -x)
WF_UNARY(neg_i32, uint32_t, uint32_t, 0u - x)
WF_UNARY(neg_i64, uint64_t, uint64_t, 0u - x)
WF_UNARY(abs_f32, float, float, fabsf(x))
WF_UNARY(abs_f64, double, double, fabs(x))
WF_UNARY(abs_i32, uint32_t, uint32_t, x >> 31 ? 0u - x : x)
WF_UNARY(abs_i64, uint64_t, uint64_t, x >> 63 ? 0u - x : x)
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
WF_UNARY(abs_u8, uint8_t, uint8_t, x)

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

WF_UNARY(is_nan_f32, float, uint8_t, x != x)
WF_UNARY(is_nan_f64, double, uint8_t, x != x)
WF_UNARY(positive_f32, float, uint8_t, x > FLT_MAX)
WF_UNARY(positive_f64, double, uint8_t, x > DBL_MAX)
WF_UNARY(negative_f32, float, uint8_t, x < -FLT_MAX)
WF_UNARY(negative_f64, double, uint8_t, x < -DBL_MAX)
WF_UNARY(either_f32, float, uint8_t, x > FLT_MAX || x < -FLT_MAX)
WF_UNARY(either_f64, double, uint8_t, x > DBL_MAX || x < -DBL_MAX)

#define IS_INF(type)                                                                               \
    static wf_status is_inf_##type(const wf_run *run, const wf_tensor *const in[],                 \
                                   wf_tensor *const out[], wf_err *err)                            \
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

#define ROW(op, dtype, fn) WF_ROW(op, WF_TYPE(dtype), fn, .in_place = 1)
#define FLOATS(op, name) ROW(op, WF_F32, name##_f32), ROW(op, WF_F64, name##_f64)
#define INTS(op, name) ROW(op, WF_I32, name##_i32), ROW(op, WF_I64, name##_i64)
#define QUESTION(op, name)                                                                         \
    WF_ROW(op, WF_TYPE(WF_F32), name##_f32), WF_ROW(op, WF_TYPE(WF_F64), name##_f64)

const wf_kernel wf_kernels_unary[] = {
    FLOATS("Neg", neg),
    INTS("Neg", neg),
    FLOATS("Abs", abs),
    INTS("Abs", abs),
    ROW("Abs", WF_U8, abs_u8),
    FLOATS("Sqrt", sqrt),
    FLOATS("Reciprocal", reciprocal),
    FLOATS("Exp", exp),
    FLOATS("Log", log),
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
    INTS("Sign", sign),
    ROW("Sign", WF_U8, sign_u8),
    QUESTION("IsInf", is_inf),
    QUESTION("IsNaN", is_nan),
    {0},
};
