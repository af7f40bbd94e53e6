/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/identity.c - Identity: y = x, of any dtype. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    WF_TRY(wf_infer_like_input(g, n, err));
    return wf_carry_input(g, n, err);
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_value *dy = wf_grads_upstream(g, n, 0);

    (void)err;
    return wf_grads_add(g, n, 0, dy);
}

const wf_op wf_op_identity = {
    .name = "Identity",
    .domain = WF_DOMAIN_ONNX,
    .since = 16,
    .n_in_min = 1,
    .n_in_max = 1,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_ELEMENTWISE | WF_OP_FOLDABLE,
    .infer = infer,
    .grad = grad,
};
