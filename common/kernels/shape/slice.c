/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/slice.c */
#include "common/kernels/shape/slice.h"
#include "common/base/size.h"
#include "common/kernels/shape/axes.h"
#include "common/kernels/shape/numbers.h"

/* The first index along an axis of `size`, as ONNX clamps it. */
static int64_t first_index(int64_t start, int64_t step, int64_t size)
{
    start = start < 0 ? start + size : start;
    start = WF_MAX(start, (int64_t)0);
    return WF_MIN(start, step > 0 ? size : size - 1);
}

wf_status wf_slice_plan_make(const wf_tensor *x, const wf_tensor *const bounds[4],
                             const wf_tensor *taken, wf_arena *arena, wf_slice_plan **out,
                             wf_err *err)
{
    wf_slice_plan *p = wf_arena_alloc(arena, sizeof *p);
    int64_t strides[1][WF_MAX_RANK];

    if (!p)
        return wf_fail_nomem(err, sizeof *p);
    for (int i = 0; i < 4; i++)
        if (bounds[i] && wf_elems(bounds[i]) && !bounds[i]->data)
            return wf_fail(err, WF_UNSUPPORTED, "make starts, ends, axes and steps constants",
                           "the part to take depends on the run");
    wf_strides(x->rank, x->dims, strides[0]);
    for (int64_t i = 0; i < wf_elems(bounds[0]); i++) {
        uint32_t axis = wf_axis_at(bounds[2] ? wf_int_at(bounds[2], i) : i, x->rank);
        int64_t step = bounds[3] ? wf_int_at(bounds[3], i) : 1;

        p->offset += first_index(wf_int_at(bounds[0], i), step, x->dims[axis]) * strides[0][axis];
        strides[0][axis] *= step;
    }
    wf_walk_strided(&p->walk, taken->rank, taken->dims, 1, (const int64_t(*)[WF_MAX_RANK])strides);
    *out = p;
    return WF_OK;
}
