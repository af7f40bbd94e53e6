/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/pull.c - ai.weft Pull: the current value of a variable, from its parameter
 * servers. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

/* The type is that of the variable if it is in this graph; otherwise the output keeps what was set.
 */
static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *variable = wf_graph_value(g, wf_node_string(n, "variable", ""));

    (void)err;
    if (variable && variable->variable != WF_VAR_NOT)
        wf_out_like(n, 0, variable->dtype, variable);
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"variable", WF_ATTR_STRING, true}, {0}};

const wf_op wf_op_pull = {
    .name = "Pull",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .n_in_min = 0,
    .n_in_max = 0,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_STATEFUL,
    .attrs = attrs,
    .infer = infer,
};
