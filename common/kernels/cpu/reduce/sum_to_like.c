/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/reduce/sum_to_like.c - ai.weft SumToLike(x, ref): x summed down to the shape
 * of ref, which broadcasts to x's. The reverse of broadcasting. */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/reduce/reduce.h"

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    uint32_t lead = in[0]->rank - out[0]->rank, mask = (1u << lead) - 1;

    for (uint32_t i = lead; i < in[0]->rank; i++)
        mask |= (out[0]->dims[i - lead] == 1 ? 1u : 0u) << i;
    return wf_reduce_prepare(prep, in[0], mask, err);
}

static wf_status sum_to_like(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                             wf_err *err)
{
    (void)err;
    wf_reduce_run(run, WF_REDUCE_SUM, in[0], out[0]);
    return WF_OK;
}

const wf_kernel wf_kernels_sum_to_like[] = {
    WF_ROW("SumToLike", WF_TYPES_NUMBER, sum_to_like, .domain = WF_DOMAIN_WEFT, .prepare = prepare),
    {0},
};
