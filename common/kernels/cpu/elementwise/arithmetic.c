/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/elementwise/arithmetic.c - Add, Sub, Mul, Div, Mod with broadcasting; Sum and
 * Mean of any number of inputs.
 *
 * Integers wrap as two's complement (computed unsigned, where C defines it). Integer division by
 * zero, which ONNX leaves open, gives 0 instead of ending the process. Mod has the sign of the
 * divisor, and with attr fmod that of the dividend.
 */
#include "common/kernels/cpu/elementwise/broadcast.h"

#include <math.h>

#define WRAPPING(name, operation)                                                                  \
    WF_BINARY(name##_f32, float, float, operation)                                                 \
    WF_BINARY(name##_f64, double, double, operation)                                               \
    WF_BINARY(name##_i32, uint32_t, uint32_t, operation)                                           \
    WF_BINARY(name##_i64, uint64_t, uint64_t, operation)                                           \
    WF_BINARY(name##_u8, uint8_t, uint8_t, operation)
WRAPPING(add, (x + y))
WRAPPING(sub, (x - y))
WRAPPING(mul, (x * y))

WF_BINARY(div_f32, float, float, x / y)
WF_BINARY(div_f64, double, double, x / y)
WF_BINARY(div_i32, int32_t, int32_t, y == 0 ? 0 : y == -1 ? (int32_t)(0u - (uint32_t)x) : x / y)
WF_BINARY(div_i64, int64_t, int64_t, y == 0 ? 0 : y == -1 ? (int64_t)(0u - (uint64_t)x) : x / y)
WF_BINARY(div_u8, uint8_t, uint8_t, y == 0 ? 0 : x / y)

/* What C's % left, moved to the sign of the divisor. */
#define FLOORED(rest, y) ((rest) != 0 && ((rest) < 0) != ((y) < 0) ? (rest) + (y) : (rest))

static inline float floored_f32(float x, float y)
{
    float rest = fmodf(x, y);

    return FLOORED(rest, y);
}

static inline double floored_f64(double x, double y)
{
    double rest = fmod(x, y);

    return FLOORED(rest, y);
}

static inline int64_t cut_int(int64_t x, int64_t y)
{
    return y == 0 || y == -1 ? 0 : x % y;
}

static inline int64_t floored_int(int64_t x, int64_t y)
{
    int64_t rest = cut_int(x, y);

    return FLOORED(rest, y);
}

WF_BINARY(cut_f32, float, float, fmodf(x, y))
WF_BINARY(cut_f64, double, double, fmod(x, y))
WF_BINARY(cut_i32, int32_t, int32_t, cut_int(x, y))
WF_BINARY(cut_i64, int64_t, int64_t, cut_int(x, y))
WF_BINARY(mod_f32, float, float, floored_f32(x, y))
WF_BINARY(mod_f64, double, double, floored_f64(x, y))
WF_BINARY(mod_i32, int32_t, int32_t, floored_int(x, y))
WF_BINARY(mod_i64, int64_t, int64_t, floored_int(x, y))
WF_BINARY(rest_u8, uint8_t, uint8_t, cut_int(x, y))

#define MOD(type)                                                                                  \
    static wf_status rest_##type(const wf_run *run, const wf_tensor *const in[],                   \
                                 wf_tensor *const out[], wf_err *err)                              \
    {                                                                                              \
        return wf_node_int(run->node, "fmod", 0) ? cut_##type(run, in, out, err)                   \
                                                 : mod_##type(run, in, out, err);                  \
    }
MOD(f32)
MOD(f64)
MOD(i32)
MOD(i64)

WF_VARIADIC(add_f32)
WF_VARIADIC(add_f64)

#define MEAN(type, T)                                                                              \
    static wf_status mean_##type(const wf_run *run, const wf_tensor *const in[],                   \
                                 wf_tensor *const out[], wf_err *err)                              \
    {                                                                                              \
        T *y = out[0]->data, n = (T)run->node->n_in;                                               \
                                                                                                   \
        WF_TRY(add_##type##_all(run, in, out, err));                                               \
        for (int64_t i = 0; i < wf_elems(out[0]); i++)                                             \
            y[i] /= n;                                                                             \
        return WF_OK;                                                                              \
    }
MEAN(f32, float)
MEAN(f64, double)

#define ROW(op, dtype, fn)                                                                         \
    WF_ROW(op, WF_TYPE(dtype), fn, .prepare = wf_binary_prepare, .in_place = 3,                    \
           .is_narrow = (dtype) == WF_F32)
#define ROWS(op, name)                                                                             \
    ROW(op, WF_F32, name##_f32), ROW(op, WF_F64, name##_f64), ROW(op, WF_I32, name##_i32),         \
        ROW(op, WF_I64, name##_i64), ROW(op, WF_U8, name##_u8)
#define VARIADIC(op, dtype, fn) WF_ROW(op, WF_TYPE(dtype), fn, .prepare = wf_variadic_prepare)

const wf_kernel wf_kernels_arithmetic[] = {
    ROWS("Add", add),
    ROWS("Sub", sub),
    ROWS("Mul", mul),
    ROWS("Div", div),
    ROWS("Mod", rest),
    VARIADIC("Sum", WF_F32, add_f32_all),
    VARIADIC("Sum", WF_F64, add_f64_all),
    VARIADIC("Mean", WF_F32, mean_f32),
    VARIADIC("Mean", WF_F64, mean_f64),
    {0},
};
