/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/shape/slice.c - Slice(x, starts, ends, axes, steps), and SliceGrad(dy, x, the
 * same four): zeros like x with dy where Slice took from. The bounds must be known when the plan is
 * made; they are then a walk with an offset. */
#include "common/kernels/shape/slice.h"
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/shape/move.h"

#include <string.h>

static wf_status prepare_slice(wf_prep *prep, const wf_tensor *const in[],
                               const wf_tensor *const out[], wf_err *err)
{
    return wf_slice_plan_make(in[0], in + 1, out[0], prep->arena, (wf_slice_plan **)&prep->state,
                              err);
}

static wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[],
                              const wf_tensor *const out[], wf_err *err)
{
    return wf_slice_plan_make(out[0], in + 2, in[0], prep->arena, (wf_slice_plan **)&prep->state,
                              err);
}

static wf_status slice(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                       wf_err *err)
{
    const wf_slice_plan *p = run->state;
    size_t size = wf_dtype_size(in[0]->dtype);

    (void)err;
    wf_gather_walk(&p->walk, size, (const char *)in[0]->data + p->offset * (ptrdiff_t)size,
                   out[0]->data);
    return WF_OK;
}

static wf_status slice_grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                            wf_err *err)
{
    const wf_slice_plan *p = run->state;
    size_t size = wf_dtype_size(in[0]->dtype);

    (void)err;
    if (wf_tensor_bytes(out[0]))
        memset(out[0]->data, 0, wf_tensor_bytes(out[0]));
    wf_scatter_walk(&p->walk, size, in[0]->data,
                    (char *)out[0]->data + p->offset * (ptrdiff_t)size);
    return WF_OK;
}

const wf_kernel wf_kernels_slice[] = {
    WF_ROW("Slice", WF_TYPES_ALL, slice, .prepare = prepare_slice),
    WF_ROW("SliceGrad", WF_TYPES_FLOAT, slice_grad, .domain = WF_DOMAIN_WEFT,
           .prepare = prepare_grad),
    {0},
};
