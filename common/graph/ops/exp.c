/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/exp.c - Exp: y = e^x; dx = dy y. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *dy = wf_grads_upstream(g, n, 0);

    (void)err;
    return wf_grads_add(g, n, 0, wf_emit_mul(e, dy, n->out[0]));
}

const wf_op wf_op_exp = {
    .name = "Exp",
    .domain = WF_DOMAIN_ONNX,
    .since = 13,
    .n_in_min = 1,
    .n_in_max = 1,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_ELEMENTWISE | WF_OP_FOLDABLE,
    .infer = wf_infer_like_float,
    .grad = grad,
};
