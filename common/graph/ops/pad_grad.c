/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/pad_grad.c - ai.weft PadGrad: dy added up where Pad with the same mode, pads and
 * axes took from. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_float(n, 0, "dy", err));
    wf_out_like(n, 0, n->in[0]->dtype, n->in[1]);
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"mode", WF_ATTR_STRING, false}, {0}};

const wf_op wf_op_pad_grad = {
    .name = "PadGrad",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .n_in_min = 3,
    .n_in_max = 4,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .attrs = attrs,
    .infer = infer,
};
