/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/train/assign.c - Read, Assign and AssignAdd: what sessions do with variables
 * that live in a cluster. Input 0 is the variable itself. No kernel computes them: whoever runs the
 * graph takes them out (common/session/remote.h). */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#include <stdio.h>

/* ai.weft Read: the value at the beginning of the run. */
const wf_op wf_op_read =
    WF_OPERATION(WF_DOMAIN_WEFT, "Read", 1, 1, 1, 1, 1, WF_OP_STATEFUL, wf_infer_like_input,
                 .means = "(variable) -> its value as the run begins; in sessions");

/* ai.weft Assign, AssignAdd: at the end of the run, in the order of the graph; an AssignAdd that a
 * node computes with before. */

static wf_status infer_assign(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *to = n->in[0], *value = n->in[1];
    char has[WF_VALUE_STR], given[WF_VALUE_STR];
    bool clash = false;

    (void)g;
    wf_out_like(n, 0, to->dtype, to);
    WF_TRY(wf_need_same_dtype(n, 0, 1, err));
    if (to->rank < 0 || value->rank < 0)
        return WF_OK;
    clash = to->rank != value->rank;
    for (int32_t i = 0; !clash && i < to->rank; i++)
        clash = wf_axes_clash(&to->axes[i], &value->axes[i]);
    if (!clash)
        return WF_OK;
    return wf_fail(err, WF_SHAPE, "reshape the value", "the variable is %s, and the value %s",
                   wf_value_str(to, has, sizeof has), wf_value_str(value, given, sizeof given));
}

const wf_op wf_op_assign = WF_OPERATION(
    WF_DOMAIN_WEFT, "Assign", 1, 2, 2, 1, 1, WF_OP_STATEFUL | WF_OP_EFFECT, infer_assign,
    .means = "(variable, value) -> the value, which the variable has when the run "
             "ends; in sessions");
const wf_op wf_op_assign_add = WF_OPERATION(
    WF_DOMAIN_WEFT, "AssignAdd", 1, 2, 2, 1, 1, WF_OP_STATEFUL | WF_OP_EFFECT, infer_assign,
    .means = "(variable, value) -> the variable, when the value has been added to it; "
             "in sessions");
