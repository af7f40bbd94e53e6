/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/shape/blocks.c - DepthToSpace, SpaceToDepth and DepthToSpaceGrad: axes of a
 * tensor in another order, so one walk over [n, c, h, b, w, b]. */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/shape/move.h"

/* A walk over the spatial side in its own order; operand 0 is the deep side. */
static wf_status prepare(wf_prep *prep, const wf_tensor *deep, const wf_tensor *wide, wf_err *err)
{
    const char *mode = wf_node_string(prep->node, "mode", "DCR");
    int64_t b = wf_node_int(prep->node, "blocksize", 1), c = wide->dims[1];
    int64_t h = deep->dims[2], w = deep->dims[3], channel = h * w;
    int64_t dims[6] = {wide->dims[0], c, h, b, w, b};
    /* Channels of the deep side are [b, b, c] with DCR and [c, b, b] with CRD. */
    bool leading = mode[0] == 'D';
    int64_t strides[1][WF_MAX_RANK] = {
        {deep->dims[1] * channel, leading ? channel : channel * b * b, w,
         leading ? channel * b * c : channel * b, 1, leading ? channel * c : channel}};
    wf_walk *walk = wf_arena_alloc(prep->arena, sizeof *walk);

    if (!walk)
        return wf_fail_nomem(err, sizeof *walk);
    wf_walk_strided(walk, 6, dims, 1, (const int64_t(*)[WF_MAX_RANK])strides);
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
