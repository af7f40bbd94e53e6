/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/equal.c - Equal: a == b, also of bools. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    return wf_infer_compare(g, n, wf_elem_equal, err);
}

const wf_op wf_op_equal = {
    .name = "Equal",
    .domain = WF_DOMAIN_ONNX,
    .since = 13,
    .n_in_min = 2,
    .n_in_max = 2,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_ELEMENTWISE | WF_OP_FOLDABLE,
    .no_grad_in = 3,
    .infer = infer,
};
