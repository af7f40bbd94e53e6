/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/grid_sample_grad.c - ai.weft GridSampleGrad: d loss / d X and d loss / d grid of
 * GridSample with the same attributes. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_check_sampling(n, err));
    WF_TRY(wf_need_float(n, 0, "dy", err));
    WF_TRY(wf_need_same_dtype(n, 0, 1, err));
    WF_TRY(wf_need_same_dtype(n, 0, 2, err));
    wf_out_like(n, 0, n->in[0]->dtype, n->in[1]);
    wf_out_like(n, 1, n->in[0]->dtype, n->in[2]);
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"align_corners", WF_ATTR_INT, false},
                                    {"mode", WF_ATTR_STRING, false},
                                    {"padding_mode", WF_ATTR_STRING, false},
                                    {0}};

const wf_op wf_op_grid_sample_grad = {
    .name = "GridSampleGrad",
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
