/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/labels.c - which inputs of a graph hold class labels, and of how many classes. */
#include "common/compile/pass.h"
#include "common/graph/op.h"

/* The input whose elements these are, in their order; NULL: what a node has computed. */
static const wf_value *source_of(const wf_value *v)
{
    while (v && v->producer && v->producer->op->keeps_order)
        v = v->producer->in[0];
    return v && !v->producer ? v : NULL;
}

void wf_label_feed(const wf_graph *g, const wf_value *input, wf_compiled_feed *f)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        const wf_node *n = g->nodes[i];
        uint32_t at = n->op->labels_in;

        if (!at || n->n_in <= at || source_of(n->in[at]) != input)
            continue;
        f->classes = n->in[0]->rank > 1 && n->in[0]->axes[1].size > 0 ? n->in[0]->axes[1].size : 0;
        f->may_ignore = wf_node_attr(n, "ignore_index") != NULL;
        return;
    }
}
