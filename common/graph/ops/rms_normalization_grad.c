/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/rms_normalization_grad.c - ai.weft RMSNormalizationGrad(dy, x, scale) -> dx,
 * dscale. */
#include "common/graph/infer.h"
#include "common/graph/ops/norm.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    uint32_t axis;

    if (n->in[1]->rank >= 0)
        WF_TRY(wf_axis_number(wf_node_int(n, "axis", -1), (uint32_t)n->in[1]->rank, &axis, err));
    return wf_infer_norm_grad(g, n, err);
}

static const wf_attr_row attrs[] = {
    {"axis", WF_ATTR_INT, false}, {"epsilon", WF_ATTR_FLOAT, false}, {0}};

const wf_op wf_op_rms_normalization_grad = {
    .name = "RMSNormalizationGrad",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .n_in_min = 3,
    .n_in_max = 3,
    .n_out_min = 1,
    .n_out_max = 2,
    .flags = WF_OP_FOLDABLE,
    .attrs = attrs,
    .infer = infer,
};
