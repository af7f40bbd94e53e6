/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/min.c - Min of any number of inputs, broadcast. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    return wf_infer_variadic(g, n, wf_elem_min, err);
}

const wf_op wf_op_min = {
    .name = "Min",
    .domain = WF_DOMAIN_ONNX,
    .since = 13,
    .n_in_min = 1,
    .n_in_max = WF_ANY_NUMBER,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_ELEMENTWISE | WF_OP_FOLDABLE,
    .infer = infer,
    .grad = wf_grad_extreme,
};
