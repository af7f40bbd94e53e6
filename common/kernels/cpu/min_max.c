/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/min_max.c - Max and Min of any number of inputs, and Clip. A NaN in any input
 * gives NaN, as ONNX's reference has it. */
#include "common/kernels/cpu/broadcast.h"
#include "common/kernels/cpu/walk.h"

#include <math.h>

WF_BINARY(max_f32, float, float, x > y || x != x ? x : y)
WF_BINARY(max_f64, double, double, x > y || x != x ? x : y)
WF_BINARY(max_i32, int32_t, int32_t, x > y ? x : y)
WF_BINARY(max_i64, int64_t, int64_t, x > y ? x : y)

WF_BINARY(min_f32, float, float, x < y || x != x ? x : y)
WF_BINARY(min_f64, double, double, x < y || x != x ? x : y)
WF_BINARY(min_i32, int32_t, int32_t, x < y ? x : y)
WF_BINARY(min_i64, int64_t, int64_t, x < y ? x : y)

/* Folds input after input into the output: walks[i] broadcasts (output so far, input i). */
static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    wf_walk *walks = wf_arena_array(prep->arena, prep->node->n_in, sizeof *walks);

    if (!walks)
        return wf_fail_nomem(err, prep->node->n_in * sizeof *walks);
    for (uint32_t i = 0; i < prep->node->n_in; i++) {
        const wf_tensor *pair[2] = {i == 0 ? in[0] : out[0], i == 0 ? in[0] : in[i]};

        wf_walk_broadcast(&walks[i], out[0], 2, pair);
    }
    prep->state = walks;
    return WF_OK;
}

/* The first input against itself spreads it over the output; max(x, x) is x. */
#define VARIADIC(name)                                                                             \
    static wf_status name##_all(const wf_run *run, const wf_tensor *const in[],                    \
                                wf_tensor *const out[], wf_err *err)                               \
    {                                                                                              \
        for (uint32_t i = 0; i < run->node->n_in; i++) {                                           \
            wf_run one = *run;                                                                     \
            const wf_tensor *pair[2] = {i == 0 ? in[0] : out[0], i == 0 ? in[0] : in[i]};          \
                                                                                                   \
            one.state = (const wf_walk *)run->state + i;                                           \
            WF_TRY(name(&one, pair, out, err));                                                    \
        }                                                                                          \
        return WF_OK;                                                                              \
    }
VARIADIC(max_f32)
VARIADIC(max_f64)
VARIADIC(max_i32)
VARIADIC(max_i64)
VARIADIC(min_f32)
VARIADIC(min_f64)
VARIADIC(min_i32)
VARIADIC(min_i64)

/* Bounds are scalars; an absent one does not bound. Low above high gives high, as numpy has it. */
#define CLIP(name, T, least, most)                                                                 \
    WF_MULTIVERSION static void name##_loop(const T *x, T *y, int64_t n, T low, T high)            \
    {                                                                                              \
        WF_NO_OVERLAP                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T v = x[i] < low ? low : x[i];                                                         \
            y[i] = v > high ? high : v;                                                            \
        }                                                                                          \
    }                                                                                              \
    static wf_status name(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],  \
                          wf_err *err)                                                             \
    {                                                                                              \
        (void)run, (void)err;                                                                      \
        name##_loop(in[0]->data, out[0]->data, wf_elems(in[0]),                                    \
                    in[1] ? *(const T *)in[1]->data : (least),                                     \
                    in[2] ? *(const T *)in[2]->data : (most));                                     \
        return WF_OK;                                                                              \
    }
CLIP(clip_f32, float, -INFINITY, INFINITY)
CLIP(clip_f64, double, -(double)INFINITY, (double)INFINITY)
CLIP(clip_i32, int32_t, INT32_MIN, INT32_MAX)
CLIP(clip_i64, int64_t, INT64_MIN, INT64_MAX)

#define ROW(op, dtype, fn) WF_ROW(op, WF_TYPE(dtype), fn, .prepare = prepare)
#define CLIP_ROW(dtype, fn) WF_ROW("Clip", WF_TYPE(dtype), fn, .in_place = 1)

const wf_kernel wf_kernels_min_max[] = {
    ROW("Max", WF_F32, max_f32_all),
    ROW("Max", WF_F64, max_f64_all),
    ROW("Max", WF_I32, max_i32_all),
    ROW("Max", WF_I64, max_i64_all),
    ROW("Min", WF_F32, min_f32_all),
    ROW("Min", WF_F64, min_f64_all),
    ROW("Min", WF_I32, min_i32_all),
    ROW("Min", WF_I64, min_i64_all),
    CLIP_ROW(WF_F32, clip_f32),
    CLIP_ROW(WF_F64, clip_f64),
    CLIP_ROW(WF_I32, clip_i32),
    CLIP_ROW(WF_I64, clip_i64),
    {0},
};
