/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/reduce/reduce.h - reducing a tensor over any of its axes. */
#ifndef WF_KERNELS_CPU_REDUCE_H
#define WF_KERNELS_CPU_REDUCE_H

#include "common/kernels/kernel.h"
#include "common/kernels/shape/reduce.h"
#include "common/tensor/tensor.h"
#include <stdint.h>

typedef enum wf_reduction {
    WF_REDUCE_SUM,
    WF_REDUCE_MEAN,
    WF_REDUCE_SUM_SQUARE,
    WF_REDUCE_L1,
    WF_REDUCE_L2,
    WF_REDUCE_LOG_SUM,
    WF_REDUCE_LOG_SUM_EXP,
    WF_REDUCE_PROD,
    WF_REDUCE_MAX,
    WF_REDUCE_MIN
} wf_reduction;

/* Fewer elements of an output than that are taken one after the other, where those of neighbouring
 * outputs lie together. */
enum { WF_REDUCE_LEAST_CUT = 1 << 20 };

/* A plan, in the plan's arena, for reducing the axes in mask of a tensor of x's dims. It asks for
 * workspace. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_reduce_prepare(wf_prep *prep, const wf_tensor *x, uint32_t mask,
                                        wf_err *err);
/* out = in reduced by the plan that wf_reduce_prepare left in run->state. f32, f64, i32 or i64;
 * WF_REDUCE_MAX and _MIN also u8 and bool. The same bits whatever the number of threads. */
void wf_reduce_run(const wf_run *run, wf_reduction how, const wf_tensor *in, wf_tensor *out);

#endif
