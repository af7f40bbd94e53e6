/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/sub.c - Sub: a - b. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    return wf_infer_arithmetic(g, n, wf_elem_sub, err);
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *a = n->in[0], *b = n->in[1], *dy = wf_grads_upstream(g, n, 0);

    (void)err;
    if (wf_grads_wanted(g, n, 0))
        WF_TRY(wf_grads_add(g, n, 0, wf_emit_sum_to(e, dy, a)));
    if (wf_grads_wanted(g, n, 1)) /* sum first: b may be smaller */
        WF_TRY(wf_grads_add(g, n, 1, wf_emit_neg(e, wf_emit_sum_to(e, dy, b))));
    return WF_OK;
}

const wf_op wf_op_sub = {
    .name = "Sub",
    .domain = WF_DOMAIN_ONNX,
    .since = 14,
    .n_in_min = 2,
    .n_in_max = 2,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_ELEMENTWISE | WF_OP_FOLDABLE,
    .infer = infer,
    .grad = grad,
};
