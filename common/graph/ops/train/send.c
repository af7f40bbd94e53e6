/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/train/send.c - Send and Recv: the two ends of an edge between tasks. Whoever
 * cuts the graph there (common/compile/stage_cut.c) has the value leave with the one, and come in
 * with the other: neither computes anything. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static const wf_attr_row attrs[] = {{"key", WF_ATTR_STRING, true}, {0}};

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    wf_out_like(n, 0, n->in[0]->dtype, n->in[0]);
    return wf_carry_input(g, n, err);
}

const wf_op wf_op_recv =
    WF_OPERATION(WF_DOMAIN_WEFT, "Recv", 1, 1, 1, 1, 1, WF_OP_STATEFUL, infer,
                 .means = "(what Send gives) -> value; attr key, as Send has it", .attrs = attrs);

const wf_op wf_op_send =
    WF_OPERATION(WF_DOMAIN_WEFT, "Send", 1, 1, 1, 1, 1, WF_OP_STATEFUL, infer,
                 .means = "(value) -> the value on its way to the Recv of the same key; attr key: "
                          "the stages that it goes from and to, and its name",
                 .attrs = attrs);
