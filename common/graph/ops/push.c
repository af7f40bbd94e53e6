/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/push.c - ai.weft Push: sends a gradient to the parameter servers of a variable.
 */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    return wf_need_float(n, 0, "the gradient", err);
}

static const wf_attr_row attrs[] = {{"variable", WF_ATTR_STRING, true}, {0}};

const wf_op wf_op_push = {
    .name = "Push",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .n_in_min = 1,
    .n_in_max = 1,
    .n_out_min = 0,
    .n_out_max = 0,
    .flags = WF_OP_STATEFUL,
    .attrs = attrs,
    .infer = infer,
};
