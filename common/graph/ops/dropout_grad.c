/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/dropout_grad.c - ai.weft DropoutGrad: dx = mask ? dy / (1 - ratio) : 0 in
 * training mode, else dy. ratio is 0.5 when absent, as for Dropout. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_float(n, 0, "dy", err));
    WF_TRY(wf_need_dtype(n, 1, WF_BOOL, "the mask", err));
    wf_out_like(n, 0, n->in[0]->dtype, n->in[0]);
    return WF_OK;
}

const wf_op wf_op_dropout_grad = {
    .name = "DropoutGrad",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .n_in_min = 2,
    .n_in_max = 4,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_ELEMENTWISE | WF_OP_FOLDABLE,
    .infer = infer,
};
