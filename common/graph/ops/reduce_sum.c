/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/reduce_sum.c - ReduceSum over the axes of input 1; without one, over all (or,
 * with noop_with_empty_axes, over none). */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    uint32_t mask;
    wf_value *dy = wf_grad_unreduce(g, n, &mask, err);

    return wf_grads_add(g, n, 0, wf_emit_expand_like(wf_grads_emit(g), dy, n->in[0]));
}

const wf_op wf_op_reduce_sum = {
    .name = "ReduceSum",
    .domain = WF_DOMAIN_ONNX,
    .since = 13,
    .n_in_min = 1,
    .n_in_max = 2,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .no_grad_in = 1u << 1,
    .attrs = wf_reduce_attrs,
    .infer = wf_infer_reduce,
    .grad = grad,
    .upgrade = wf_upgrade_axes,
};
