/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/abs.c - Abs: y = |x|; dx = dy sign(x), 0 at 0 as PyTorch has it. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *dy = wf_grads_upstream(g, n, 0), *x = n->in[0];
    wf_value *zero = wf_emit_scalar(e, x->dtype, 0);
    wf_value *negative =
        wf_emit_where(e, wf_emit_binary(e, "Less", x, zero), wf_emit_neg(e, dy), zero);

    (void)err;
    return wf_grads_add(g, n, 0,
                        wf_emit_where(e, wf_emit_binary(e, "Greater", x, zero), dy, negative));
}

const wf_op wf_op_abs = {
    .name = "Abs",
    .domain = WF_DOMAIN_ONNX,
    .since = 13,
    .n_in_min = 1,
    .n_in_max = 1,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_ELEMENTWISE | WF_OP_FOLDABLE,
    .infer = wf_infer_like_number,
    .grad = grad,
};
