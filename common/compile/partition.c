/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/partition.c - one graph per task.
 *
 * Under parameter_server every worker gets the same graph on one device, so there is one partition:
 * Pull and Push are the only edges that leave it. Each node is marked with the device that it runs
 * on, which every worker reads as its own.
 */
#include "common/compile/pass.h"

wf_status wf_pass_partition(wf_unit *u, wf_err *err)
{
    static const char device[] = "/job:worker/device:cpu:0";

    if (u->spec->strategy == WF_COMPILE_LOCAL)
        return WF_OK;
    for (size_t i = 0; i < u->graph->n_nodes; i++)
        u->graph->nodes[i]->device = device;
    return wf_graph_check(u->graph, err);
}
