/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/train/ports.c - Pull and Push. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

/* ai.weft Pull: the current value of a variable, from wherever it lives. */

/* The type is that of the variable if it is in this graph; otherwise the output keeps what was set.
 */
static wf_status infer_pull(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *variable = wf_graph_value(g, wf_node_string(n, "variable", ""));

    (void)err;
    if (variable && variable->variable != WF_VAR_NOT)
        wf_out_like(n, 0, variable->dtype, variable);
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"variable", WF_ATTR_STRING, true}, {0}};

const wf_op wf_op_pull =
    WF_OPERATION(WF_DOMAIN_WEFT, "Pull", 1, 0, 0, 1, 1, WF_OP_STATEFUL | WF_OP_SOURCE, infer_pull,
                 .means = "() -> value; attr variable: its name; the output has the type that its "
                          "maker gave it",
                 .attrs = attrs);

/* ai.weft Push: gives a gradient, or a statistic, to whoever holds the variable. */

static wf_status infer_push(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    return wf_need_float(n, 0, "the gradient", err);
}

const wf_op wf_op_push =
    WF_OPERATION(WF_DOMAIN_WEFT, "Push", 1, 1, 1, 0, 0, WF_OP_STATEFUL | WF_OP_SINK, infer_push,
                 .means = "(gradient) -> nothing; attr variable", .attrs = attrs);
