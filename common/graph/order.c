/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/order.c - rewriting: dropping nodes, topological order, the invariants. */
#include "common/graph/graph.h"
#include "common/graph/names.h"
#include "common/graph/op.h"
#include "common/graph/uses.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void drop_node(wf_graph *g, wf_node *n)
{
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            n->out[i]->producer = NULL;
    wf_uses_unlink(n);
    while (n->n_attrs)
        wf_node_drop_attr(n, n->attrs[0].name);
    wf_names_remove(&g->names->nodes, n->name);
}

/* A mark for drop_values; the index of a value in use is its place in g->values. */
static const uint32_t unused = UINT32_MAX;

static void mark_used(wf_graph *g)
{
    for (size_t i = 0; i < g->n_values; i++)
        g->values[i]->index = unused;
    for (size_t i = 0; i < g->n_nodes; i++) {
        const wf_node *n = g->nodes[i];

        for (uint32_t k = 0; k < n->n_in; k++)
            if (n->in[k])
                n->in[k]->index = 0;
        for (uint32_t k = 0; k < n->n_out; k++)
            if (n->out[k])
                n->out[k]->index = 0;
    }
    for (size_t i = 0; i < g->n_inputs; i++)
        g->inputs[i]->index = 0;
    for (size_t i = 0; i < g->n_outputs; i++)
        g->outputs[i]->index = 0;
}

static void drop_values(wf_graph *g)
{
    size_t kept = 0;

    mark_used(g);
    for (size_t i = 0; i < g->n_values; i++) {
        wf_value *v = g->values[i];

        if (v->index == unused) {
            wf_names_remove(&g->names->values, v->name);
            wf_tensor_free(&v->known);
            continue;
        }
        v->index = (uint32_t)kept;
        g->values[kept++] = v;
    }
    g->n_values = kept;
}

void wf_graph_keep_nodes(wf_graph *g, const bool keep[])
{
    size_t kept = 0;

    for (size_t i = 0; i < g->n_nodes; i++) {
        wf_node *n = g->nodes[i];

        if (!keep[i]) {
            drop_node(g, n);
            continue;
        }
        n->index = (uint32_t)kept;
        g->nodes[kept++] = n;
    }
    g->n_nodes = kept;
    drop_values(g);
}

/* Depth first over producers, without recursion: a graph may be as deep as it has nodes. */
typedef struct walk {
    wf_node **order; /* finished nodes */
    size_t n_order;
    struct frame {
        wf_node *node;
        uint32_t next; /* input to look at */
    } * stack;
    size_t depth;
    uint8_t *state; /* by node index: 0 new, 1 on the stack, 2 finished */
} walk;

static void push(walk *w, wf_node *n)
{
    w->state[n->index] = 1;
    w->stack[w->depth++] = (struct frame){n, 0};
}

static wf_status visit(walk *w, wf_node *root, wf_err *err)
{
    if (w->state[root->index])
        return WF_OK;
    push(w, root);
    while (w->depth) {
        struct frame *top = &w->stack[w->depth - 1];
        wf_node *producer;

        if (top->next == top->node->n_in) {
            w->state[top->node->index] = 2;
            w->order[w->n_order++] = top->node;
            w->depth--;
            continue;
        }
        producer = top->node->in[top->next] ? top->node->in[top->next]->producer : NULL;
        top->next++;
        if (producer && w->state[producer->index] == 1)
            return wf_fail(
                err, WF_INVALID, NULL, "the graph has a cycle through %s \"%s\" and %s \"%s\"",
                producer->op->name, producer->name, top->node->op->name, top->node->name);
        if (producer && w->state[producer->index] == 0)
            push(w, producer);
    }
    return WF_OK;
}

wf_status wf_graph_sort(wf_graph *g, wf_err *err)
{
    walk w = {.order = calloc(g->n_nodes + 1, sizeof w.order[0]),
              .stack = calloc(g->n_nodes + 1, sizeof w.stack[0]),
              .state = calloc(g->n_nodes + 1, 1)};
    wf_status rc = WF_OK;

    if (!w.order || !w.stack || !w.state) {
        rc = wf_fail_nomem(err, g->n_nodes * sizeof w.stack[0]);
        goto out;
    }
    for (size_t i = 0; i < g->n_nodes; i++)
        g->nodes[i]->index = (uint32_t)i;
    for (size_t i = 0; i < g->n_nodes && rc == WF_OK; i++)
        rc = visit(&w, g->nodes[i], err);
    if (rc != WF_OK)
        goto out;
    for (size_t i = 0; i < g->n_nodes; i++) {
        g->nodes[i] = w.order[i];
        g->nodes[i]->index = (uint32_t)i;
    }
out:
    free(w.order);
    free(w.stack);
    free(w.state);
    return rc;
}

static bool is_given(const wf_value *v)
{
    return v->producer || v->is_input || v->known || v->variable != WF_VAR_NOT;
}

static wf_status check_node(const wf_graph *g, size_t at, wf_err *err)
{
    const wf_node *n = g->nodes[at];

    if (n->index != at || wf_graph_node(g, n->name) != n)
        return wf_fail(err, WF_INVALID, NULL, "node \"%s\" is not where its name says", n->name);
    for (uint32_t i = 0; i < n->n_in; i++) {
        const wf_value *v = n->in[i];

        if (!v)
            continue;
        if (!is_given(v))
            return wf_fail(err, WF_INVALID, NULL, "%s \"%s\": nothing makes its input %u, \"%s\"",
                           n->op->name, n->name, i, v->name);
        if (v->producer && v->producer->index >= at)
            return wf_fail(err, WF_INVALID, NULL, "%s \"%s\" comes before \"%s\", which it uses",
                           n->op->name, n->name, v->producer->name);
    }
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i] && (n->out[i]->producer != n || n->out[i]->output != i))
            return wf_fail(err, WF_INVALID, NULL, "%s \"%s\" does not own its output %u",
                           n->op->name, n->name, i);
    return wf_uses_check(n, err);
}

wf_status wf_graph_check(const wf_graph *g, wf_err *err)
{
    for (size_t i = 0; i < g->n_values; i++)
        if (g->values[i]->index != i || wf_graph_value(g, g->values[i]->name) != g->values[i])
            return wf_fail(err, WF_INVALID, NULL, "value \"%s\" is not where its name says",
                           g->values[i]->name);
    for (size_t i = 0; i < g->n_nodes; i++)
        WF_TRY(check_node(g, i, err));
    for (size_t i = 0; i < g->n_outputs; i++)
        if (!is_given(g->outputs[i]))
            return wf_fail(err, WF_INVALID, NULL, "nothing makes the graph's output \"%s\"",
                           g->outputs[i]->name);
    return WF_OK;
}
