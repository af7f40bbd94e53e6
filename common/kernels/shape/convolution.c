/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/convolution.c */
#include "common/kernels/shape/convolution.h"
#include "common/graph/graph.h"

wf_status wf_convolution_of(const wf_node *n, const wf_tensor *x, const wf_tensor *w,
                            const wf_tensor *y, bool transposed, wf_convolution *v, wf_err *err)
{
    *v = (wf_convolution){.batch = x->dims[0], .groups = wf_node_int(n, "group", 1)};
    if (transposed)
        WF_TRY(wf_spatial_transposed(n, y, x, w, &v->s, err));
    else
        WF_TRY(wf_spatial_of(n, x, y, w, &v->s, err));
    if (v->groups < 1 || y->dims[0] != v->batch || w->dims[1] * v->groups != x->dims[1] ||
        w->dims[0] != y->dims[1] || w->dims[0] % v->groups)
        return wf_fail(err, WF_SHAPE, NULL, "data, weights and result do not fit each other");
    v->c = w->dims[1];
    v->m = w->dims[0] / v->groups;
    return WF_OK;
}
