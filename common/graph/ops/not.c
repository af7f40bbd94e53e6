/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/not.c - Not: of bools. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_dtype(n, 0, WF_BOOL, "X", err));
    wf_out_like(n, 0, WF_BOOL, n->in[0]);
    return WF_OK;
}

const wf_op wf_op_not = {
    .name = "Not",
    .domain = WF_DOMAIN_ONNX,
    .since = 1,
    .n_in_min = 1,
    .n_in_max = 1,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_ELEMENTWISE | WF_OP_FOLDABLE,
    .infer = infer,
};
