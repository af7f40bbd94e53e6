/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/shape/blocks.c - DepthToSpace, SpaceToDepth and DepthToSpaceGrad: axes of a
 * tensor in another order, so one walk. */
#include "common/kernels/shape/blocks.h"
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/shape/move.h"

static wf_status prepare(wf_prep *prep, const wf_tensor *deep, const wf_tensor *wide, wf_err *err)
{
    wf_walk *walk = wf_arena_alloc(prep->arena, sizeof *walk);

    if (!walk)
        return wf_fail_nomem(err, sizeof *walk);
    wf_blocks_walk(prep->node, deep, wide, walk);
    prep->state = walk;
    return WF_OK;
}

static wf_status prepare_wide(wf_prep *prep, const wf_tensor *const in[],
                              const wf_tensor *const out[], wf_err *err)
{
    return prepare(prep, in[0], out[0], err);
}

static wf_status prepare_deep(wf_prep *prep, const wf_tensor *const in[],
                              const wf_tensor *const out[], wf_err *err)
{
    return prepare(prep, out[0], in[0], err);
}

static wf_status to_wide(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                         wf_err *err)
{
    (void)err;
    wf_gather_walk(run->state, wf_dtype_size(in[0]->dtype), in[0]->data, out[0]->data);
    return WF_OK;
}

static wf_status to_deep(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                         wf_err *err)
{
    (void)err;
    wf_scatter_walk(run->state, wf_dtype_size(in[0]->dtype), in[0]->data, out[0]->data);
    return WF_OK;
}

const wf_kernel wf_kernels_blocks[] = {
    WF_ROW("DepthToSpace", WF_TYPES_ALL, to_wide, .prepare = prepare_wide),
    WF_ROW("DepthToSpaceGrad", WF_TYPES_FLOAT, to_deep, .domain = WF_DOMAIN_WEFT,
           .prepare = prepare_deep),
    WF_ROW("SpaceToDepth", WF_TYPES_ALL, to_deep, .prepare = prepare_deep),
    {0},
};
