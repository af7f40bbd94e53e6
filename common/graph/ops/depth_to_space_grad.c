/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/depth_to_space_grad.c - ai.weft DepthToSpaceGrad: dy's elements back where
 * DepthToSpace with the same attributes took them from. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    return wf_infer_blocks(n, false, err);
}

static const wf_attr_row attrs[] = {
    {"blocksize", WF_ATTR_INT, true}, {"mode", WF_ATTR_STRING, false}, {0}};

const wf_op wf_op_depth_to_space_grad = {
    .name = "DepthToSpaceGrad",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .n_in_min = 1,
    .n_in_max = 1,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .attrs = attrs,
    .infer = infer,
};
