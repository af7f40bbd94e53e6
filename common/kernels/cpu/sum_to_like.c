/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/sum_to_like.c - ai.weft SumToLike(x, ref): x summed down to the shape of ref,
 * which broadcasts to x's. The reverse of broadcasting. */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/reduce.h"

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    wf_walk *walk = wf_arena_alloc(prep->arena, sizeof *walk);

    if (!walk)
        return wf_fail_nomem(err, sizeof *walk);
    wf_walk_broadcast(walk, in[0], 1, out); /* out spread over x says where each of x belongs */
    prep->state = walk;
    return WF_OK;
}

static wf_status sum_to_like(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                             wf_err *err)
{
    (void)err;
    wf_sum_walk(run->state, in[0], out[0]);
    return WF_OK;
}

const wf_kernel wf_kernels_sum_to_like[] = {
    WF_ROW("SumToLike", WF_TYPES_NUMBER, sum_to_like, .domain = WF_DOMAIN_WEFT, .prepare = prepare),
    {0},
};
