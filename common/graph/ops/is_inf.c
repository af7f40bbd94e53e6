/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/is_inf.c - IsInf: true where x is infinite, of the signs that attrs
 * detect_positive and detect_negative (1 by default) ask for. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_float(n, 0, "X", err));
    wf_out_like(n, 0, WF_BOOL, n->in[0]);
    return WF_OK;
}

static const wf_attr_row attrs[] = {
    {"detect_negative", WF_ATTR_INT, false}, {"detect_positive", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_is_inf =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "IsInf", 10, 1, infer, .no_grad_in = 1, .attrs = attrs);
