/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/shape/trilu.c - Trilu: the upper (attr upper, 1) or lower triangle of the last
 * two axes, from the diagonal that input 1 names; zeros elsewhere. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    if (wf_node_has_in(n, 1))
        WF_TRY(wf_need_int(n, 1, "k", err));
    if (n->in[0]->rank >= 0 && n->in[0]->rank < 2)
        return wf_fail(err, WF_SHAPE, NULL, "the input has %d axes, and must have two",
                       n->in[0]->rank);
    return wf_infer_like_input(g, n, err);
}

static const wf_attr_row attrs[] = {{"upper", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_trilu =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "Trilu", 14, 1, 2, infer, .no_grad_in = 1u << 1, .attrs = attrs,
                WF_GRAD_NODE("Trilu", "d0 x1"));
