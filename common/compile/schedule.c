/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/schedule.c - the order in which nodes run.
 *
 * Pushes should leave as early as they can, so that they travel while the rest is computed; pulls
 * are wanted in the order of their first use. So: take the pushes by depth, the longest path to
 * them (the last layer's gradients lie shallowest); in front of each put what it needs and is not
 * there yet, and last what only the outputs need (metrics, and the loss where no gradient reads
 * it).
 */
#include "common/compile/pass.h"
#include <stdlib.h>

typedef struct order {
    wf_node **nodes; /* in their new order */
    size_t n;
    bool *done;      /* [n_nodes], by the old index */
    wf_node **stack; /* [n_nodes]: nodes whose inputs are being put */
    uint32_t *next;  /* [n_nodes]: the input to look at next, by the old index */
} order;

typedef struct push {
    wf_node *node;
    uint32_t depth;
} push;

static int by_depth(const void *a, const void *b)
{
    const push *x = a, *y = b;

    if (x->depth != y->depth)
        return x->depth < y->depth ? -1 : 1;
    return x->node->index < y->node->index ? -1 : x->node->index > y->node->index;
}

/* Puts n after all that it needs; an own stack, since graphs are thousands of nodes deep. */
static void put(order *o, wf_node *n)
{
    size_t top = 0;

    if (o->done[n->index])
        return;
    o->stack[top++] = n;
    while (top) {
        wf_node *at = o->stack[top - 1];
        uint32_t *i = &o->next[at->index];

        if (*i < at->n_in) {
            wf_node *p = at->in[*i] ? at->in[*i]->producer : NULL;

            (*i)++;
            if (p && !o->done[p->index])
                o->stack[top++] = p;
            continue;
        }
        if (!o->done[at->index]) {
            o->done[at->index] = true;
            o->nodes[o->n++] = at;
        }
        top--;
    }
}

/* Depths of all nodes in topological order, and the pushes by them. */
static size_t list_pushes(const wf_graph *g, uint32_t depth[], push pushes[])
{
    size_t n = 0;

    for (size_t i = 0; i < g->n_nodes; i++) {
        wf_node *node = g->nodes[i];

        for (uint32_t k = 0; k < node->n_in; k++)
            if (node->in[k] && node->in[k]->producer &&
                depth[i] <= depth[node->in[k]->producer->index])
                depth[i] = depth[node->in[k]->producer->index] + 1;
        if (node->op->flags & WF_OP_SINK)
            pushes[n++] = (push){node, depth[i]};
    }
    qsort(pushes, n, sizeof(*pushes), by_depth);
    return n;
}

static void reorder(wf_graph *g, order *o, uint32_t depth[], push pushes[])
{
    size_t n = list_pushes(g, depth, pushes);

    for (size_t i = 0; i < n; i++)
        put(o, pushes[i].node);
    for (size_t i = 0; i < g->n_nodes; i++)
        put(o, g->nodes[i]);
    wf_assert(o->n == g->n_nodes);
    for (size_t i = 0; i < o->n; i++) {
        g->nodes[i] = o->nodes[i];
        g->nodes[i]->index = (uint32_t)i;
    }
}

wf_status wf_pass_schedule(wf_unit *u, wf_err *err)
{
    wf_graph *g = u->graph;
    wf_status rc = WF_OK;
    size_t n = g->n_nodes + 1;
    order o = {.nodes = calloc(n, sizeof(*o.nodes)),
               .done = calloc(n, sizeof(*o.done)),
               .stack = calloc(n, sizeof(*o.stack)),
               .next = calloc(n, sizeof(*o.next))};
    uint32_t *depth = calloc(n, sizeof(*depth));
    push *pushes = calloc(n, sizeof(*pushes));

    if (o.nodes && o.done && o.stack && o.next && depth && pushes)
        reorder(g, &o, depth, pushes);
    else
        rc = wf_fail_nomem(err, n * (3 * sizeof(void *) + sizeof(push)));
    free(o.nodes);
    free(o.done);
    free(o.stack);
    free(o.next);
    free(depth);
    free(pushes);
    return rc == WF_OK ? wf_graph_check(g, err) : rc;
}
