/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/if.c - If, for the listing: reading a file puts its branches in its place
 * (onnx_branch.c), so that no graph has one. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g, (void)n;
    return wf_fail(err, WF_UNSUPPORTED, NULL, "a graph has Choose in its place");
}

static const wf_attr_row attrs[] = {
    {"else_branch", WF_ATTR_GRAPH, true}, {"then_branch", WF_ATTR_GRAPH, true}, {0}};

const wf_op wf_op_if = {
    .name = "If",
    .domain = WF_DOMAIN_ONNX,
    .since = 16,
    .n_in_min = 1,
    .n_in_max = 1,
    .n_out_min = 1,
    .n_out_max = WF_ANY_NUMBER,
    .flags = WF_OP_READ_AWAY,
    .note = "its branches become part of the graph: one, once the condition is known; else both",
    .no_grad_in = 1u << 0,
    .attrs = attrs,
    .infer = infer,
};
