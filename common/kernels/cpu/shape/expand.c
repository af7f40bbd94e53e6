/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/shape/expand.c - Expand: input 0 broadcast to the shape in input 1. */
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/shape/move.h"

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    wf_walk *walk = wf_arena_alloc(prep->arena, sizeof *walk);

    if (!walk)
        return wf_fail_nomem(err, sizeof *walk);
    wf_walk_broadcast(walk, out[0], 1, in);
    prep->state = walk;
    return WF_OK;
}

static wf_status expand(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                        wf_err *err)
{
    (void)err;
    wf_gather_walk(run->state, wf_dtype_size(in[0]->dtype), in[0]->data, out[0]->data);
    return WF_OK;
}

const wf_kernel wf_kernels_expand[] = {
    WF_ROW("Expand", WF_TYPES_ALL, expand, .prepare = prepare),
    {0},
};
