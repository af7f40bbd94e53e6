/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/sum.c - Sum of any number of inputs, broadcast. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    WF_TRY(wf_need_float(n, 0, "data_0", err));
    return wf_infer_variadic(g, n, NULL, err);
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *dy = wf_grads_upstream(g, n, 0);

    (void)err;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (wf_grads_wanted(g, n, i))
            WF_TRY(wf_grads_add(g, n, i, wf_emit_sum_to(e, dy, n->in[i])));
    return wf_emit_end(e);
}

const wf_op wf_op_sum = {
    .name = "Sum",
    .domain = WF_DOMAIN_ONNX,
    .since = 13,
    .n_in_min = 1,
    .n_in_max = WF_ANY_NUMBER,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_ELEMENTWISE | WF_OP_FOLDABLE,
    .infer = infer,
    .grad = grad,
};
