/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/erf.c - Erf: the error function; dx = dy 2 / sqrt(pi) e^(-x^2). */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *x = n->in[0];
    wf_value *bell = wf_emit_exp(e, wf_emit_neg(e, wf_emit_mul(e, x, x)));

    (void)err;
    bell = wf_emit_scale(e, bell, 1.1283791670955126);
    return wf_grads_add(g, n, 0, wf_emit_mul(e, wf_grads_upstream(g, n, 0), bell));
}

const wf_op wf_op_erf =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Erf", 13, 1, wf_infer_like_float, .grad = grad);
