/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/shape/pad.c - Pad, CenterCropPad, and PadGrad, which adds dy up where Pad took
 * from. Where an axis ends lies in lists made beforehand (maps.h), so one loop serves all modes. */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/shape/mapped.h"
#include "common/kernels/shape/border.h"

static int64_t place(const void *border, uint32_t axis, int64_t i, int64_t from)
{
    return wf_border_place(border, axis, i, from);
}

static wf_status prepare_pad(wf_prep *prep, const wf_tensor *const in[],
                             const wf_tensor *const out[], wf_err *err)
{
    wf_border b;

    WF_TRY(wf_border_of(prep->node, in[1], in[3], in[0]->rank, &b, err));
    return wf_maps_make(out[0], in[0], place, &b, prep->arena, (wf_maps **)&prep->state, err);
}

static wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[],
                              const wf_tensor *const out[], wf_err *err)
{
    wf_border b;

    WF_TRY(wf_border_of(prep->node, in[2], in[3], in[1]->rank, &b, err));
    return wf_maps_make(in[0], out[0], place, &b, prep->arena, (wf_maps **)&prep->state, err);
}

static wf_status prepare_center(wf_prep *prep, const wf_tensor *const in[],
                                const wf_tensor *const out[], wf_err *err)
{
    wf_border b = wf_border_centred(in[0], out[0]);

    return wf_maps_make(out[0], in[0], place, &b, prep->arena, (wf_maps **)&prep->state, err);
}

const wf_kernel wf_kernels_pad[] = {
    WF_ROW("CenterCropPad", WF_TYPES_ALL, wf_run_gather, .prepare = prepare_center),
    WF_ROW("Pad", WF_TYPES_ALL, wf_run_gather, .prepare = prepare_pad),
    WF_ROW("PadGrad", WF_TYPES_FLOAT, wf_run_gather_grad, .domain = WF_DOMAIN_WEFT,
           .prepare = prepare_grad),
    {0},
};
