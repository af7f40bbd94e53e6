/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/gather_grad.c - ai.weft GatherGrad: dy's slices added at the places that ids
 * name, in zeros of the shape of data. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_float(n, 0, "dy", err));
    WF_TRY(wf_need_int(n, 1, "ids", err));
    wf_out_like(n, 0, n->in[0]->dtype, n->in[2]);
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"axis", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_gather_grad = {
    .name = "GatherGrad",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .n_in_min = 3,
    .n_in_max = 3,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .attrs = attrs,
    .infer = infer,
};
