/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/conv_weight_grad.c - ai.weft ConvWeightGrad(dy, X, W): Conv's gradient with
 * respect to W, of which only the shape is read. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"
#include "common/graph/ops/spatial.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_float(n, 0, "dy", err));
    WF_TRY(wf_need_same_dtype(n, 0, 1, err));
    wf_out_like(n, 0, n->in[0]->dtype, n->in[2]);
    return WF_OK;
}

const wf_op wf_op_conv_weight_grad = {
    .name = "ConvWeightGrad",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .n_in_min = 3,
    .n_in_max = 3,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .attrs = wf_conv_rows,
    .infer = infer,
};
