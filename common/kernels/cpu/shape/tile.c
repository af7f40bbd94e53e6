/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/shape/tile.c - Tile: x over and over along each axis, as far as the output
 * goes; and TileGrad, which adds the copies up. */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/shape/mapped.h"

static int64_t place(const void *arg, uint32_t axis, int64_t i, int64_t from)
{
    (void)arg, (void)axis;
    return from ? i % from : -1;
}

static wf_status prepare_tile(wf_prep *prep, const wf_tensor *const in[],
                              const wf_tensor *const out[], wf_err *err)
{
    return wf_maps_make(out[0], in[0], place, NULL, prep->arena, (wf_maps **)&prep->state, err);
}

static wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[],
                              const wf_tensor *const out[], wf_err *err)
{
    return wf_maps_make(in[0], out[0], place, NULL, prep->arena, (wf_maps **)&prep->state, err);
}

const wf_kernel wf_kernels_tile[] = {
    WF_ROW("Tile", WF_TYPES_ALL, wf_run_gather, .prepare = prepare_tile),
    WF_ROW("TileGrad", WF_TYPES_FLOAT, wf_run_gather_grad, .domain = WF_DOMAIN_WEFT,
           .prepare = prepare_grad),
    {0},
};
