/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/arg_max.c - ArgMax along one axis: the first of equals, or the last with
 * select_last_index. */
#include "common/kernels/cpu/cpu.h"

#define ARG_MAX(name, T)                                                                           \
    static wf_status name(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],  \
                          wf_err *err)                                                             \
    {                                                                                              \
        wf_around a = wf_around_axis(in[0], wf_node_int(run->node, "axis", 0));                    \
        bool last = wf_node_int(run->node, "select_last_index", 0) != 0;                           \
        const T *x = in[0]->data;                                                                  \
        int64_t *to = out[0]->data;                                                                \
                                                                                                   \
        (void)err;                                                                                 \
        for (int64_t o = 0; o < a.outer; o++, x += a.axis * a.inner)                               \
            for (int64_t i = 0; i < a.inner; i++) {                                                \
                int64_t best = 0;                                                                  \
                                                                                                   \
                for (int64_t k = 1; k < a.axis; k++) {                                             \
                    T v = x[k * a.inner + i], top = x[best * a.inner + i];                         \
                                                                                                   \
                    if (v > top || (last && v >= top))                                             \
                        best = k;                                                                  \
                }                                                                                  \
                *to++ = best;                                                                      \
            }                                                                                      \
        return WF_OK;                                                                              \
    }
ARG_MAX(arg_max_f32, float)
ARG_MAX(arg_max_f64, double)
ARG_MAX(arg_max_i32, int32_t)
ARG_MAX(arg_max_i64, int64_t)

const wf_kernel wf_kernels_arg_max[] = {
    WF_ROW("ArgMax", WF_TYPE(WF_F32), arg_max_f32),
    WF_ROW("ArgMax", WF_TYPE(WF_F64), arg_max_f64),
    WF_ROW("ArgMax", WF_TYPE(WF_I32), arg_max_i32),
    WF_ROW("ArgMax", WF_TYPE(WF_I64), arg_max_i64),
    {0},
};
