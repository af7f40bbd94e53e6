/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/reduce/sum_to_like.c - ai.weft SumToLike: undoes a broadcast, for shapes that
 * are known at run time only. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g, (void)err;
    wf_out_like(n, 0, n->in[0]->dtype, n->in[1]);
    return WF_OK;
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    (void)err;
    return wf_grads_add(
        g, n, 0, wf_emit_expand_like(wf_grads_emit(g), wf_grads_upstream(g, n, 0), n->in[0]));
}

const wf_op wf_op_sum_to_like =
    WF_FOLDABLE(WF_DOMAIN_WEFT, "SumToLike", 1, 2, 2, infer,
                .means = "(x, ref) -> as ref; sums the axes along which ref was broadcast to x; of "
                         "ref only the shape is read",
                .no_grad_in = 1u << 1, .grad = grad);
