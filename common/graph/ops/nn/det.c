/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/nn/det.c - Det: the determinant of each matrix in the last two axes. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    char text[WF_VALUE_STR];

    (void)g;
    WF_TRY(wf_need_float(n, 0, "X", err));
    wf_out_unknown(n, 0, x->dtype);
    if (x->rank < 0)
        return WF_OK;
    if (x->rank < 2 || wf_axes_clash(&x->axes[x->rank - 1], &x->axes[x->rank - 2]))
        return wf_fail(err, WF_SHAPE, NULL, "X is %s, and must be of square matrices",
                       wf_value_str(x, text, sizeof text));
    wf_out_axes(n, 0, x->dtype, (uint32_t)x->rank - 2, x->axes);
    return WF_OK;
}

const wf_op wf_op_det = WF_FOLDABLE(WF_DOMAIN_ONNX, "Det", 11, 1, 1, infer);
