/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/less_or_equal.c - LessOrEqual: a <= b, of numbers. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_elem compare(const wf_elem *a, const wf_elem *b)
{
    wf_elem opposite = wf_elem_greater(a, b);

    return opposite.is_known ? wf_elem_of(!opposite.value) : wf_elem_unknown();
}

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    return wf_infer_compare(g, n, compare, err);
}

const wf_op wf_op_less_or_equal =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "LessOrEqual", 16, 2, infer, .no_grad_in = 3);
