/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/cast_like.c - CastLike: input 0 with the dtype of input 1. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    wf_out_like(n, 0, n->in[1]->dtype, n->in[0]);
    return wf_carry_cast(g, n, err);
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    (void)err;
    return wf_grads_add(
        g, n, 0, wf_emit_cast(wf_grads_emit(g), wf_grads_upstream(g, n, 0), n->in[0]->dtype));
}

static wf_status upgrade(wf_graph *g, wf_node *n, int64_t from, wf_err *err)
{
    (void)g, (void)from, (void)err;
    wf_node_drop_attr(n, "saturate"); /* as in Cast */
    wf_node_drop_attr(n, "round_mode");
    return WF_OK;
}

const wf_op wf_op_cast_like = {
    .name = "CastLike",
    .domain = WF_DOMAIN_ONNX,
    .since = 15,
    .n_in_min = 2,
    .n_in_max = 2,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_ELEMENTWISE | WF_OP_FOLDABLE,
    .no_grad_in = 1u << 1,
    .infer = infer,
    .grad = grad,
    .upgrade = upgrade,
};
