/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/pooling.c */
#include "common/kernels/shape/pooling.h"
#include "common/graph/graph.h"

wf_status wf_pooling_of(const wf_node *n, const wf_tensor *x, const wf_tensor *y, wf_pooling *v,
                        wf_err *err)
{
    *v = (wf_pooling){.p = (double)wf_node_int(n, "p", 2)};
    WF_TRY(wf_spatial_of(n, x, y, NULL, &v->s, err));
    if (x->dims[0] != y->dims[0] || x->dims[1] != y->dims[1])
        return wf_fail(err, WF_SHAPE, NULL, "data and result have other batches or channels");
    v->planes = x->dims[0] * x->dims[1];
    v->by_columns = wf_node_int(n, "storage_order", 0) != 0;
    v->whole = v->s.w.whole && v->s.in_size > 0;
    v->pads = wf_node_int(n, "count_include_pad", 0) != 0;
    return v->p >= 1 ? WF_OK
                     : wf_fail(err, WF_INVALID, NULL, "p is %g, and must be 1 or more", v->p);
}

wf_status wf_pooling_grad_of(const wf_node *n, const wf_tensor *const in[], wf_pooling *v,
                             wf_err *err)
{
    const wf_tensor *y = in[2];

    for (uint32_t i = 0; y && i < in[0]->rank; i++)
        if (y->rank != in[0]->rank || y->dims[i] != in[0]->dims[i])
            return wf_fail(err, WF_SHAPE, NULL, "dy and y have other shapes");
    return wf_pooling_of(n, in[1], in[0], v, err);
}
