/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/shape/transpose.cu - Transpose: output axis i is input axis perm[i]. */
#include "common/kernels/cuda/shape/move.h"

namespace
{

wf_status transpose(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                    wf_err *err)
{
    int64_t own[WF_MAX_RANK], strides[1][WF_MAX_RANK] = {{0}};
    size_t count;
    const int64_t *perm = wf_node_ints(run->node, "perm", &count);
    uint32_t rank = in[0]->rank;
    wf_walk w;

    wf_strides(rank, in[0]->dims, own);
    for (uint32_t i = 0; i < rank; i++)
        strides[0][i] = own[perm ? (uint32_t)perm[i] : rank - 1 - i];
    wf_walk_strided(&w, rank, out[0]->dims, 1, strides);
    return wf_gather(run, &w, in[0], out[0], err);
}

} // namespace

WF_CUDA_ROWS(transpose){{.op = "Transpose", .dtypes = WF_TYPES_ALL, .run = transpose}, {}};
