/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/is_nan.c - IsNaN: true where x is no number. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_float(n, 0, "X", err));
    wf_out_like(n, 0, WF_BOOL, n->in[0]);
    return WF_OK;
}

const wf_op wf_op_is_nan = WF_ELEMENTWISE(WF_DOMAIN_ONNX, "IsNaN", 13, 1, infer, .no_grad_in = 1);
