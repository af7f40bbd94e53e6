/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/shape/blocks.cu - DepthToSpace, SpaceToDepth and DepthToSpaceGrad: axes of a
 * tensor in another order, so one walk. */
#include "common/kernels/cuda/shape/move.h"
extern "C" {
#include "common/kernels/shape/blocks.h"
}

namespace
{

wf_status to_wide(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                  wf_err *err)
{
    wf_walk w;

    wf_blocks_walk(run->node, in[0], out[0], &w);
    return wf_gather(run, &w, in[0], out[0], err);
}

wf_status to_deep(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                  wf_err *err)
{
    wf_walk w;

    wf_blocks_walk(run->node, out[0], in[0], &w);
    return wf_scatter_from(run, &w, in[0], 0, out[0], err);
}

} // namespace

WF_CUDA_ROWS(blocks){
    {.op = "DepthToSpace", .dtypes = WF_TYPES_ALL, .run = to_wide},
    {.op = "DepthToSpaceGrad", .domain = WF_DOMAIN_WEFT, .dtypes = WF_TYPES_FLOAT, .run = to_deep},
    {.op = "SpaceToDepth", .dtypes = WF_TYPES_ALL, .run = to_deep},
    {},
};
