/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/transpose.c - Transpose: output axis i is input axis perm[i]. */
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/move.h"

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    wf_walk *walk = wf_arena_alloc(prep->arena, sizeof *walk);
    int64_t own[WF_MAX_RANK], strides[1][WF_MAX_RANK] = {{0}};
    const int64_t *perm;
    size_t count;

    if (!walk)
        return wf_fail_nomem(err, sizeof *walk);
    perm = wf_node_ints(prep->node, "perm", &count);
    wf_strides(in[0]->rank, in[0]->dims, own);
    for (uint32_t i = 0; i < in[0]->rank; i++)
        strides[0][i] = own[perm ? (uint32_t)perm[i] : in[0]->rank - 1 - i];
    wf_walk_strided(walk, out[0]->rank, out[0]->dims, 1, (const int64_t(*)[WF_MAX_RANK])strides);
    prep->state = walk;
    return WF_OK;
}

static wf_status transpose(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                           wf_err *err)
{
    (void)err;
    wf_gather_walk(run->state, wf_dtype_size(in[0]->dtype), in[0]->data, out[0]->data);
    return WF_OK;
}

const wf_kernel wf_kernels_transpose[] = {
    WF_ROW("Transpose", WF_TYPES_ALL, transpose, .prepare = prepare),
    {0},
};
