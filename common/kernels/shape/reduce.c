/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/reduce.c */
#include "common/kernels/shape/reduce.h"
#include "common/kernels/shape/axes.h"
#include "common/kernels/shape/numbers.h"

void wf_reduce_plan_of(const wf_tensor *x, uint32_t mask, wf_reduce_plan *p)
{
    int64_t own[WF_MAX_RANK], dims[2][WF_MAX_RANK], strides[2][1][WF_MAX_RANK];
    uint32_t n[2] = {0, 0};

    wf_strides(x->rank, x->dims, own);
    for (uint32_t i = 0; i < x->rank; i++) {
        uint32_t side = mask >> i & 1u;

        dims[side][n[side]] = x->dims[i];
        strides[side][0][n[side]++] = own[i];
    }
    wf_walk_strided(&p->kept, n[0], dims[0], 1, (const int64_t(*)[WF_MAX_RANK])strides[0]);
    wf_walk_strided(&p->reduced, n[1], dims[1], 1, (const int64_t(*)[WF_MAX_RANK])strides[1]);
}

wf_status wf_reduce_mask(const wf_node *n, const wf_tensor *x, const wf_tensor *axes,
                         uint32_t *mask, wf_err *err)
{
    int64_t count = axes ? wf_elems(axes) : 0;

    *mask = 0;
    if (count && !axes->data)
        return wf_fail(err, WF_UNSUPPORTED, "make the axes a constant",
                       "the axes to reduce depend on the run");
    if (count == 0 && !wf_node_int(n, "noop_with_empty_axes", 0))
        *mask = (1u << x->rank) - 1;
    for (int64_t i = 0; i < count; i++)
        *mask |= 1u << wf_axis_at(wf_int_at(axes, i), x->rank);
    return WF_OK;
}
