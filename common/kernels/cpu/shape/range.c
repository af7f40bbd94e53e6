/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/shape/range.c - Range(start, limit, delta): start + i delta. How many there
 * are is known from the shape. */
#include "common/kernels/cpu/cpu.h"

/* Integers wrap as unsigned ones do: nothing stops a file from naming bounds that are too large. */
#define RANGE(name, T, U)                                                                          \
    static wf_status name(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],  \
                          wf_err *err)                                                             \
    {                                                                                              \
        U start = (U) * (const T *)in[0]->data, delta = (U) * (const T *)in[2]->data;              \
        int64_t n = wf_elems(out[0]);                                                              \
        T *to = out[0]->data;                                                                      \
                                                                                                   \
        (void)run, (void)err;                                                                      \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] = (T)(start + (U)i * delta);                                                     \
        return WF_OK;                                                                              \
    }
RANGE(range_f32, float, double)
RANGE(range_f64, double, double)
RANGE(range_i32, int32_t, uint32_t)
RANGE(range_i64, int64_t, uint64_t)

const wf_kernel wf_kernels_range[] = {
    WF_ROW("Range", WF_TYPE(WF_F32), range_f32),
    WF_ROW("Range", WF_TYPE(WF_F64), range_f64),
    WF_ROW("Range", WF_TYPE(WF_I32), range_i32),
    WF_ROW("Range", WF_TYPE(WF_I64), range_i64),
    {0},
};
