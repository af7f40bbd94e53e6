/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/partition.c - one graph per task.
 *
 * Under parameter_server every worker gets the same graph on one device, so there is one partition:
 * Pull and Push are the only edges that leave it. Each node is marked with the device that it runs
 * on, which every worker reads as its own.
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
    static const char device[] = "/job:worker/device:cpu:0";

    WF_TRY(settle_branches(u, err));
    if (!u->spec->strategy)
        return WF_OK;
    for (size_t i = 0; i < u->graph->n_nodes; i++)
        u->graph->nodes[i]->device = device;
    return wf_graph_check(u->graph, err);
}
