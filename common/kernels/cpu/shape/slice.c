/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/shape/slice.c - Slice(x, starts, ends, axes, steps), and SliceGrad(dy, x, the
 * same four): zeros like x with dy where Slice took from. The bounds must be known when the plan is
 * made; they are then a walk with an offset. */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/shape/move.h"

#include <string.h>

typedef struct plan {
    int64_t offset; /* of the first element taken */
    wf_walk walk;
} plan;

/* The first index along an axis of `size`, as ONNX clamps it. */
static int64_t first_index(int64_t start, int64_t step, int64_t size)
{
    start = start < 0 ? start + size : start;
    start = WF_MAX(start, (int64_t)0);
    return WF_MIN(start, step > 0 ? size : size - 1);
}

/* bounds [4]: starts, ends, axes, steps; the last two may be NULL. */
static wf_status prepare(wf_prep *prep, const wf_tensor *x, const wf_tensor *const bounds[4],
                         const wf_tensor *taken, wf_err *err)
{
    plan *p = wf_arena_alloc(prep->arena, sizeof *p);
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
    prep->state = p;
    return WF_OK;
}

static wf_status prepare_slice(wf_prep *prep, const wf_tensor *const in[],
                               const wf_tensor *const out[], wf_err *err)
{
    return prepare(prep, in[0], in + 1, out[0], err);
}

static wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[],
                              const wf_tensor *const out[], wf_err *err)
{
    return prepare(prep, out[0], in + 2, in[0], err);
}

static wf_status slice(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                       wf_err *err)
{
    const plan *p = run->state;
    size_t size = wf_dtype_size(in[0]->dtype);

    (void)err;
    wf_gather_walk(&p->walk, size, (const char *)in[0]->data + p->offset * (ptrdiff_t)size,
                   out[0]->data);
    return WF_OK;
}

static wf_status slice_grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                            wf_err *err)
{
    const plan *p = run->state;
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
