/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/resize_grad.c - ai.weft ResizeGrad(dy, x, (roi), (scales), (sizes)): Resize's
 * gradient; of x only the shape is read. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"
#include "common/graph/ops/resize.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *dy = n->in[0], *x = n->in[1];

    (void)g;
    WF_TRY(wf_need_float(n, 0, "dy", err));
    WF_TRY(wf_need_same_dtype(n, 0, 1, err));
    WF_TRY(wf_resize_check(n, err));
    if (dy->rank >= 0 && x->rank >= 0 && dy->rank != x->rank)
        return wf_fail(err, WF_SHAPE, NULL, "dy has %d axes and x %d", dy->rank, x->rank);
    wf_out_like(n, 0, dy->dtype, x);
    return WF_OK;
}

const wf_op wf_op_resize_grad = {
    .name = "ResizeGrad",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .n_in_min = 2,
    .n_in_max = 5,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .attrs = wf_resize_rows,
    .infer = infer,
};
