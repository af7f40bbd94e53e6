/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/elementwise/min_max.c - Max and Min of any number of inputs, and Clip. A NaN
 * in any input gives NaN, as ONNX's reference has it. */
#include "common/kernels/cpu/elementwise/broadcast.h"

#include <math.h>

WF_BINARY(max_f32, float, float, x > y || x != x ? x : y)
WF_BINARY(max_f64, double, double, x > y || x != x ? x : y)
WF_BINARY(max_i32, int32_t, int32_t, x > y ? x : y)
WF_BINARY(max_i64, int64_t, int64_t, x > y ? x : y)
WF_BINARY(max_u8, uint8_t, uint8_t, x > y ? x : y)

WF_BINARY(min_f32, float, float, x < y || x != x ? x : y)
WF_BINARY(min_f64, double, double, x < y || x != x ? x : y)
WF_BINARY(min_i32, int32_t, int32_t, x < y ? x : y)
WF_BINARY(min_i64, int64_t, int64_t, x < y ? x : y)
WF_BINARY(min_u8, uint8_t, uint8_t, x < y ? x : y)

WF_VARIADIC(max_f32)
WF_VARIADIC(max_f64)
WF_VARIADIC(max_i32)
WF_VARIADIC(max_i64)
WF_VARIADIC(max_u8)
WF_VARIADIC(min_f32)
WF_VARIADIC(min_f64)
WF_VARIADIC(min_i32)
WF_VARIADIC(min_i64)
WF_VARIADIC(min_u8)

/* Bounds are scalars; an absent one does not bound. Low above high gives high, as numpy has it. */
#define CLIP(name, T, least, most)                                                                 \
    typedef struct name##_job {                                                                    \
        const T *x;                                                                                \
        T *y, low, high;                                                                           \
    } name##_job;                                                                                  \
    WF_MULTIVERSION static void name##_loop(const T *x, T *y, int64_t n, T low, T high)            \
    {                                                                                              \
        WF_NO_OVERLAP                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T v = x[i] < low ? low : x[i];                                                         \
            y[i] = v > high ? high : v;                                                            \
        }                                                                                          \
    }                                                                                              \
    static void name##_range(void *arg, int64_t begin, int64_t end)                                \
    {                                                                                              \
        const name##_job *j = arg;                                                                 \
                                                                                                   \
        name##_loop(j->x + begin, j->y + begin, end - begin, j->low, j->high);                     \
    }                                                                                              \
    static wf_status name(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],  \
                          wf_err *err)                                                             \
    {                                                                                              \
        name##_job j = {in[0]->data, out[0]->data, in[1] ? *(const T *)in[1]->data : (least),      \
                        in[2] ? *(const T *)in[2]->data : (most)};                                 \
                                                                                                   \
        (void)err;                                                                                 \
        wf_pool_for(run->pool, wf_elems(in[0]), WF_GRAIN, name##_range, &j);                       \
        return WF_OK;                                                                              \
    }
CLIP(clip_f32, float, -INFINITY, INFINITY)
CLIP(clip_f64, double, -(double)INFINITY, (double)INFINITY)
CLIP(clip_i32, int32_t, INT32_MIN, INT32_MAX)
CLIP(clip_i64, int64_t, INT64_MIN, INT64_MAX)
CLIP(clip_u8, uint8_t, 0, UINT8_MAX)

#define ROW(op, dtype, fn) WF_ROW(op, WF_TYPE(dtype), fn, .prepare = wf_variadic_prepare)
#define ROWS(op, name)                                                                             \
    ROW(op, WF_F32, name##_f32_all), ROW(op, WF_F64, name##_f64_all),                              \
        ROW(op, WF_I32, name##_i32_all), ROW(op, WF_I64, name##_i64_all),                          \
        ROW(op, WF_U8, name##_u8_all)
#define CLIP_ROW(dtype, fn) WF_ROW("Clip", WF_TYPE(dtype), fn, .in_place = 1)

const wf_kernel wf_kernels_min_max[] = {
    ROWS("Max", max),           ROWS("Min", min),
    CLIP_ROW(WF_F32, clip_f32), CLIP_ROW(WF_F64, clip_f64),
    CLIP_ROW(WF_I32, clip_i32), CLIP_ROW(WF_I64, clip_i64),
    CLIP_ROW(WF_U8, clip_u8),   {0},
};
