/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/prune.c - only what the outputs and the pushes need stays.
 *
 * So a variable of an unused branch has no Pull left, and never reaches a ps; and an input that
 * nothing reads is not asked for.
 */
#include "common/compile/pass.h"
#include <stdlib.h>

/* Nodes are in topological order: one sweep backwards. */
void wf_mark_needed(const wf_graph *g, bool keep[], bool wanted[])
{
    for (size_t i = 0; i < g->n_outputs; i++)
        wanted[g->outputs[i]->index] = true;
    for (size_t i = g->n_nodes; i-- > 0;) {
        const wf_node *n = g->nodes[i];

        keep[i] = n->op->flags & WF_OP_SINK;
        for (uint32_t k = 0; k < n->n_out; k++)
            keep[i] = keep[i] || (n->out[k] && wanted[n->out[k]->index]);
        for (uint32_t k = 0; keep[i] && k < n->n_in; k++)
            if (n->in[k])
                wanted[n->in[k]->index] = true;
    }
}

/* An input that nothing reads is no feed. */
static void drop_inputs(wf_graph *g, const bool wanted[])
{
    size_t kept = 0;

    for (size_t i = 0; i < g->n_inputs; i++) {
        wf_value *v = g->inputs[i];

        if (wanted[v->index])
            g->inputs[kept++] = v;
        else
            v->is_input = false;
    }
    g->n_inputs = kept;
}

wf_status wf_pass_prune(wf_unit *u, wf_err *err)
{
    wf_graph *g = u->graph;
    wf_status rc;
    bool *keep = NULL, *wanted = NULL;

    rc = wf_graph_sort(g, err);
    if (rc != WF_OK)
        return rc;
    keep = calloc(g->n_nodes + 1, sizeof(*keep));
    wanted = calloc(g->n_values + 1, sizeof(*wanted));
    if (keep && wanted) {
        wf_mark_needed(g, keep, wanted);
        drop_inputs(g, wanted);
        wf_graph_keep_nodes(g, keep);
    } else {
        rc = wf_fail_nomem(err, g->n_nodes + g->n_values);
    }
    free(keep);
    free(wanted);
    return rc;
}
