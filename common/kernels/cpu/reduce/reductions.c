/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/reduce/reductions.c - the Reduce operations of ONNX: axes are input 1, all of
 * them when there are none (unless noop_with_empty_axes). */
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/reduce/reduce.h"

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    uint32_t mask;

    prep->widens = out[0]->dtype == WF_BF16;
    WF_TRY(wf_reduce_mask(prep->node, in[0], in[1], &mask, err));
    return wf_reduce_prepare(prep, in[0], mask, err);
}

#define KERNEL(name, how)                                                                          \
    static wf_status name(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],  \
                          wf_err *err)                                                             \
    {                                                                                              \
        (void)err;                                                                                 \
        wf_reduce_run(run, how, in[0], out[0]);                                                    \
        return WF_OK;                                                                              \
    }
KERNEL(reduce_l1, WF_REDUCE_L1)
KERNEL(reduce_l2, WF_REDUCE_L2)
KERNEL(reduce_log_sum, WF_REDUCE_LOG_SUM)
KERNEL(reduce_log_sum_exp, WF_REDUCE_LOG_SUM_EXP)
KERNEL(reduce_max, WF_REDUCE_MAX)
KERNEL(reduce_mean, WF_REDUCE_MEAN)
KERNEL(reduce_min, WF_REDUCE_MIN)
KERNEL(reduce_prod, WF_REDUCE_PROD)
KERNEL(reduce_sum, WF_REDUCE_SUM)
KERNEL(reduce_sum_square, WF_REDUCE_SUM_SQUARE)

#define ROW(op, dtypes, fn, ...) WF_ROW(op, dtypes, fn, .prepare = prepare, __VA_ARGS__)
#define TYPES_ORDERED (WF_TYPES_NUMBER | WF_TYPE(WF_U8) | WF_TYPE(WF_BOOL))

const wf_kernel wf_kernels_reductions[] = {
    ROW("ReduceL1", WF_TYPES_NUMBER, reduce_l1),
    ROW("ReduceL2", WF_TYPES_NUMBER, reduce_l2),
    ROW("ReduceLogSum", WF_TYPES_NUMBER, reduce_log_sum),
    ROW("ReduceLogSumExp", WF_TYPES_NUMBER, reduce_log_sum_exp),
    ROW("ReduceMax", TYPES_ORDERED, reduce_max),
    ROW("ReduceMean", WF_TYPES_NUMBER, reduce_mean, .is_narrow = true),
    ROW("ReduceMin", TYPES_ORDERED, reduce_min),
    ROW("ReduceProd", WF_TYPES_NUMBER, reduce_prod),
    ROW("ReduceSum", WF_TYPES_NUMBER, reduce_sum, .is_narrow = true),
    ROW("ReduceSumSquare", WF_TYPES_NUMBER, reduce_sum_square),
    {0},
};
