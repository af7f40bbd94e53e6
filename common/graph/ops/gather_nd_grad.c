/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/gather_nd_grad.c - ai.weft GatherNDGrad: dy added up where GatherND took from,
 * in zeros of the shape of data. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_float(n, 0, "dy", err));
    WF_TRY(wf_need_int(n, 1, "indices", err));
    wf_out_like(n, 0, n->in[0]->dtype, n->in[2]);
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"batch_dims", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_gather_nd_grad = {
    .name = "GatherNDGrad",
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
