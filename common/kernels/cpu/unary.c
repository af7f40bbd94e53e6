/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/unary.c - Neg, Abs, Sqrt, Reciprocal, Exp, Log. Exp of f32 is vmath.h's; the
 * rest of the transcendental ones are libm's. */
#include "common/kernels/cpu/broadcast.h"
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
WF_UNARY(log_f32, float, float, logf(x))
WF_UNARY(log_f64, double, double, log(x))

#define ROW(op, dtype, fn) WF_ROW(op, WF_TYPE(dtype), fn, .in_place = 1)

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
    {0},
};
