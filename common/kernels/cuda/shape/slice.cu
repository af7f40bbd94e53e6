/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/shape/slice.cu - Slice(x, starts, ends, axes, steps), and SliceGrad(dy, x,
 * the same four): zeros like x with dy where Slice took from. The bounds must be known when the
 * plan is made. */
#include "common/kernels/cuda/shape/move.h"
extern "C" {
#include "common/kernels/shape/slice.h"
}

namespace
{

wf_status prepare(wf_prep *prep, const wf_tensor *x, const wf_tensor *const bounds[],
                  const wf_tensor *taken, wf_err *err)
{
    wf_slice_plan *p;

    WF_TRY(wf_slice_plan_make(x, bounds, taken, prep->arena, &p, err));
    prep->state = p;
    return WF_OK;
}

wf_status prepare_slice(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                        wf_err *err)
{
    return prepare(prep, in[0], in + 1, out[0], err);
}

wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                       wf_err *err)
{
    return prepare(prep, out[0], in + 2, in[0], err);
}

wf_status slice(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    const wf_slice_plan *p = static_cast<const wf_slice_plan *>(run->state);

    return wf_gather_from(run, &p->walk, in[0], p->offset, out[0], err);
}

wf_status slice_grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                     wf_err *err)
{
    const wf_slice_plan *p = static_cast<const wf_slice_plan *>(run->state);

    WF_TRY(wf_clear(run, out[0], err));
    return wf_scatter_from(run, &p->walk, in[0], p->offset, out[0], err);
}

} // namespace

WF_CUDA_ROWS(slice){
    {.op = "Slice", .dtypes = WF_TYPES_ALL, .prepare = prepare_slice, .run = slice},
    {.op = "SliceGrad",
     .domain = WF_DOMAIN_WEFT,
     .dtypes = WF_TYPES_FLOAT,
     .prepare = prepare_grad,
     .run = slice_grad},
    {},
};
