/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/shape/expand.cu - Expand: input 0 broadcast to the shape in input 1. */
#include "common/kernels/cuda/shape/move.h"

namespace
{

wf_status expand(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                 wf_err *err)
{
    wf_walk w;

    wf_walk_broadcast(&w, out[0], 1, in);
    return wf_gather(run, &w, in[0], out[0], err);
}

} // namespace

WF_CUDA_ROWS(expand){{.op = "Expand", .dtypes = WF_TYPES_ALL, .run = expand}, {}};
