/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/shape/tile.cu - Tile: x over and over along each axis, as far as the output
 * goes, which is a border that begins anew; and TileGrad, which adds the copies up. */
#include "common/kernels/cuda/reduce/reduce.h"
#include "common/kernels/cuda/shape/border.h"

namespace
{

wf_status tile(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    wf_border b = {};

    b.mode = WF_BORDER_WRAP;
    return wf_border_around(run, b, in[0], nullptr, out[0], err);
}

/* Each axis of dy is [copies, axis of dx]; the copies are reduced. */
wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                       wf_err *err)
{
    const wf_tensor *dy = in[0], *dx = out[0];
    int64_t copies[WF_MAX_RANK], own[WF_MAX_RANK];
    int64_t kept[1][WF_MAX_RANK], reduced[1][WF_MAX_RANK];
    wf_reduce_plan p;

    wf_strides(dy->rank, dy->dims, own);
    for (uint32_t i = 0; i < dy->rank; i++) {
        copies[i] = dx->dims[i] ? dy->dims[i] / dx->dims[i] : 0;
        kept[0][i] = own[i];
        reduced[0][i] = own[i] * dx->dims[i];
    }
    wf_walk_strided(&p.kept, dx->rank, dx->dims, 1, kept);
    wf_walk_strided(&p.reduced, dy->rank, copies, 1, reduced);
    return wf_reduce_as(prep, p, err);
}

} // namespace

#define GRAD(dtype, T)                                                                             \
    {                                                                                              \
        .op = "TileGrad", .domain = WF_DOMAIN_WEFT, .dtypes = WF_TYPE(dtype),                      \
        .prepare = prepare_grad, .run = wf_reduce<T, T, wf_sum<double>>                            \
    }

WF_CUDA_ROWS(tile){
    {.op = "Tile", .dtypes = WF_TYPES_ALL, .run = tile},
    GRAD(WF_F32, float),
    GRAD(WF_F64, double),
    {},
};
