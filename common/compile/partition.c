/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/partition.c - one graph per task.
 *
 * Under parameter_server every worker gets the same graph, so there is one: Pull and Push are the
 * only edges that leave a task. Which of a worker's devices runs a node is said by its mark: that
 * of its layer, and a gradient's of the node that it is of. The worker's plan cuts the graph there,
 * and puts a copy on each edge that is cut (common/exec/devices.c): between devices of one process
 * that is all that a Send and a Recv would do.
 *
 * A model that is divided has a stage for each node, which its mark names as the task of a worker,
 * or as a device of it, and Send and Recv on the edges between them (stages.c).
 */
#include "common/compile/pass.h"

/* A branch that is still there may be taken: now it has to fit. */
static wf_status settle_branches(wf_unit *u, wf_err *err)
{
    for (size_t i = 0; i < u->graph->n_nodes; i++) {
        wf_node *n = u->graph->nodes[i];

        if (!n->is_tentative)
            continue;
        n->is_tentative = false;
        WF_TRY(wf_infer_node(u->graph, n, err));
    }
    return WF_OK;
}

wf_status wf_pass_partition(wf_unit *u, wf_err *err)
{
    WF_TRY(settle_branches(u, err));
    if (u->spec->strategy && u->spec->n_stages > 0)
        WF_TRY(wf_stages_assign(u, err));
    return u->spec->strategy ? wf_graph_check(u->graph, err) : WF_OK;
}
