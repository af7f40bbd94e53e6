/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/uses.c - who reads a value (G4): each input of a node is in the list of the value
 * that it names. A rule asks this of every node that it looks at, and a rewrite moves a whole list;
 * neither may cost a walk over the graph. */
#include "common/graph/uses.h"
#include "common/graph/op.h"

#include <string.h>

static void link_use(wf_use *u, wf_value *v)
{
    u->next = v->first_use;
    u->from = &v->first_use;
    if (u->next)
        u->next->from = &u->next;
    v->first_use = u;
    v->n_uses++;
}

static void unlink_use(wf_use *u, wf_value *v)
{
    *u->from = u->next;
    if (u->next)
        u->next->from = u->from;
    v->n_uses--;
}

wf_status wf_uses_link(wf_graph *g, wf_node *n, wf_err *err)
{
    n->uses = wf_arena_array(g->arena, n->n_in, sizeof n->uses[0]);
    if (!n->uses)
        return wf_fail_nomem(err, n->n_in * sizeof n->uses[0]);
    for (uint32_t i = 0; i < n->n_in; i++) {
        n->uses[i].node = n;
        if (n->in[i])
            link_use(&n->uses[i], n->in[i]);
    }
    return WF_OK;
}

void wf_uses_unlink(wf_node *n)
{
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i])
            unlink_use(&n->uses[i], n->in[i]);
}

void wf_node_set_in(wf_node *n, uint32_t i, wf_value *v)
{
    wf_assert(i < n->n_in);
    if (n->in[i])
        unlink_use(&n->uses[i], n->in[i]);
    ((wf_value **)n->in)[i] = v;
    if (v)
        link_use(&n->uses[i], v);
}

wf_status wf_node_set_ins(wf_graph *g, wf_node *n, uint32_t n_in, wf_value *const in[], wf_err *err)
{
    wf_value **list = wf_arena_array(g->arena, n_in, sizeof list[0]);

    if (!list)
        return wf_fail_nomem(err, n_in * sizeof list[0]);
    if (n_in)
        memcpy(list, in, n_in * sizeof list[0]);
    wf_uses_unlink(n);
    n->in = list;
    n->n_in = n_in;
    return wf_uses_link(g, n, err);
}

void wf_graph_replace_uses(wf_graph *g, const wf_value *from, wf_value *to)
{
    for (const wf_use *u = from->first_use, *next; u && from != to; u = next) {
        next = u->next;
        wf_node_set_in(u->node, (uint32_t)(u - u->node->uses), to);
    }
    for (size_t i = 0; i < g->n_outputs; i++)
        if (g->outputs[i] == from)
            g->outputs[i] = to;
}

wf_status wf_uses_check(const wf_node *n, wf_err *err)
{
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i] && (*n->uses[i].from != &n->uses[i] || !n->in[i]->n_uses))
            return wf_fail(err, WF_INVALID, NULL, "%s \"%s\" is not in the list of its input %u",
                           n->op->name, n->name, i);
    return WF_OK;
}
