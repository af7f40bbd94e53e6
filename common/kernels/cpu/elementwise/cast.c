/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/elementwise/cast.c - Cast and CastLike, among all dtypes.
 *
 * Floats become integers by cutting; what does not fit saturates and NaN becomes 0, where C leaves
 * it open. Integers wrap into narrower ones. Anything but 0 is true. Halves go by way of f32, a
 * block at a time.
 */
#include "common/kernels/cpu/cpu.h"

#include <math.h>

enum { BLOCK = 1024 };

typedef void cast_fn(const void *from, void *to, int64_t n);

/* double holds the bounds of i32 exactly, and of i64 as the power of two just above. */
static inline int64_t int_of(double x)
{
    if (!(x > -0x1p63)) /* NaN too */
        return x != x ? 0 : INT64_MIN;
    return x >= 0x1p63 ? INT64_MAX : (int64_t)x;
}

static inline int32_t int32_of(double x)
{
    if (!(x > -0x1p31))
        return x != x ? 0 : INT32_MIN;
    return x >= 0x1p31 ? INT32_MAX : (int32_t)x;
}

static inline uint8_t byte_of(double x)
{
    return !(x > 0) ? 0 : x >= 255 ? 255 : (uint8_t)x;
}

#define CAST(name, S, D, expr)                                                                     \
    WF_MULTIVERSION static void name##_loop(const S *from, D *to, int64_t n)                       \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            S x = from[i];                                                                         \
            to[i] = (D)(expr);                                                                     \
        }                                                                                          \
    }                                                                                              \
    static void name(const void *from, void *to, int64_t n)                                        \
    {                                                                                              \
        name##_loop(from, to, n);                                                                  \
    }

#define CASTS(s, S, to_i32, to_i64, to_u8)                                                         \
    CAST(s##_f32, S, float, x)                                                                     \
    CAST(s##_f64, S, double, x)                                                                    \
    CAST(s##_i32, S, int32_t, to_i32)                                                              \
    CAST(s##_i64, S, int64_t, to_i64)                                                              \
    CAST(s##_u8, S, uint8_t, to_u8)                                                                \
    CAST(s##_bool, S, uint8_t, x != 0)
CASTS(f32, float, int32_of((double)x), int_of((double)x), byte_of((double)x))
CASTS(f64, double, int32_of(x), int_of(x), byte_of(x))
CASTS(i32, int32_t, x, x, x)
CASTS(i64, int64_t, x, x, x)
CASTS(u8, uint8_t, x, x, x)
CAST(f16_f32, uint16_t, float, wf_f16_to_f32(x))
CAST(f32_f16, float, uint16_t, wf_f32_to_f16(x))
CAST(bf16_f32, uint16_t, float, wf_bf16_to_f32(x))
CAST(f32_bf16, float, uint16_t, wf_f32_to_bf16(x))

#define FROM(name, S)                                                                              \
    [S] = {[WF_F32] = name##_f32, [WF_F64] = name##_f64, [WF_I32] = name##_i32,                    \
           [WF_I64] = name##_i64, [WF_U8] = name##_u8,   [WF_BOOL] = name##_bool}

enum { N_DTYPES = WF_BF16 + 1 };
static cast_fn *const direct[N_DTYPES][N_DTYPES] = {
    FROM(f32, WF_F32), FROM(f64, WF_F64), FROM(i32, WF_I32),
    FROM(i64, WF_I64), FROM(u8, WF_U8),   FROM(u8, WF_BOOL), /* bools are bytes of 0 or 1 */
};

static bool is_half(wf_dtype dtype)
{
    return dtype == WF_F16 || dtype == WF_BF16;
}

static void by_way_of_f32(wf_dtype from, const char *x, wf_dtype to, char *y, int64_t n)
{
    float block[BLOCK];
    size_t size_x = wf_dtype_size(from), size_y = wf_dtype_size(to);
    cast_fn *in = from == WF_F16 ? f16_f32 : from == WF_BF16 ? bf16_f32 : direct[from][WF_F32];
    cast_fn *out = to == WF_F16 ? f32_f16 : to == WF_BF16 ? f32_bf16 : direct[WF_F32][to];

    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t count = WF_MIN(n - at, (int64_t)BLOCK);

        in(x + (size_t)at * size_x, block, count);
        out(block, y + (size_t)at * size_y, count);
    }
}

typedef struct job {
    const wf_tensor *in;
    wf_tensor *out;
} job;

static void range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    wf_dtype from = j->in->dtype, to = j->out->dtype;
    const char *x = (const char *)j->in->data + (size_t)begin * wf_dtype_size(from);
    char *y = (char *)j->out->data + (size_t)begin * wf_dtype_size(to);

    if (from == to)
        wf_copy(y, x, (size_t)(end - begin) * wf_dtype_size(to));
    else if (is_half(from) || is_half(to))
        by_way_of_f32(from, x, to, y, end - begin);
    else
        direct[from][to](x, y, end - begin);
}

static wf_status cast(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                      wf_err *err)
{
    job j = {in[0], out[0]};

    (void)err;
    wf_pool_for(run->pool, wf_elems(in[0]), WF_GRAIN, range, &j);
    return WF_OK;
}

const wf_kernel wf_kernels_cast[] = {
    WF_ROW("Cast", WF_TYPES_ALL, cast),
    WF_ROW("CastLike", WF_TYPES_ALL, cast),
    {0},
};
