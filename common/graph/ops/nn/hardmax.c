/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/nn/hardmax.c - Hardmax: 1 at the first largest element along attr axis, 0
 * elsewhere; a step, which no gradient passes. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    uint32_t axis;

    if (n->in[0]->rank >= 0)
        WF_TRY(wf_axis_number(wf_node_int(n, "axis", -1), (uint32_t)n->in[0]->rank, &axis, err));
    return wf_infer_like_float(g, n, err);
}

static const wf_attr_row attrs[] = {{"axis", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_hardmax =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "Hardmax", 13, 1, 1, infer, .no_grad_in = 1u << 0, .attrs = attrs);
