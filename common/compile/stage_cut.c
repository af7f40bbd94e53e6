/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/stage_cut.c - the graph of a divided model is cut at its Send and Recv nodes, and
 * between what a stage computes before and after it hears of later stages. */
#include "common/compile/pass.h"

#include <stdlib.h>
#include <string.h>

/* A copy of the whole graph, of which a part stays. */
typedef struct part {
    const wf_compiled *c;
    wf_graph *g;
    uint32_t stage;
    bool backward;
    bool *late;  /* [n_nodes] */
    bool *keep;  /* [n_nodes] */
    bool *given; /* [n_values]: it leaves the part */
} part;

static bool is_end(const wf_node *n)
{
    return wf_node_is(n, WF_DOMAIN_WEFT, "Send") || wf_node_is(n, WF_DOMAIN_WEFT, "Recv");
}

/* Past Send and Recv. */
static wf_value *made(wf_value *v)
{
    while (v->producer && is_end(v->producer) && wf_node_has_in(v->producer, 0))
        v = v->producer->in[0];
    return v;
}

static bool is_source(const wf_node *n)
{
    return n->op->flags & WF_OP_SOURCE;
}

/* Variables do not change between the two parts of a stage: each pulls them by itself. */
static void choose(part *p)
{
    for (size_t i = p->g->n_nodes; i-- > 0;) {
        const wf_node *n = p->g->nodes[i];
        bool here = wf_stage_of_node(p->c, n) == p->stage && !is_end(n);

        p->keep[i] = here && p->late[i] == p->backward;
        if (!here || !is_source(n))
            continue;
        p->keep[i] = !p->backward && wf_is_output(p->g, n->out[0]);
        for (const wf_use *u = n->out[0]->first_use; u; u = u->next)
            p->keep[i] |= p->keep[u->node->index] ||
                          (!p->backward && wf_node_is(u->node, WF_DOMAIN_WEFT, "Send"));
    }
}

/* What a kept node makes leaves the part if another part or the world reads it. */
static void mark_given(part *p)
{
    for (size_t i = 0; i < p->g->n_outputs; i++)
        p->given[p->g->outputs[i]->index] = true;
    for (size_t i = 0; i < p->g->n_nodes; i++)
        for (uint32_t k = 0; k < p->g->nodes[i]->n_in; k++) {
            const wf_node *n = p->g->nodes[i];
            const wf_value *v = n->in[k];

            if (!v || !v->producer || p->keep[i])
                continue;
            if (wf_node_is(n, WF_DOMAIN_WEFT, "Send") || !is_source(v->producer))
                p->given[v->index] = true;
        }
}

/* An input in place of a value that the part does not make. */
static wf_status make_input(wf_graph *g, wf_value *v, wf_err *err)
{
    char *name = wf_arena_strdup(g->arena, v->name);
    char *aside = wf_arena_printf(g->arena, "%s/elsewhere", v->name);
    wf_value *in;

    if (!name || !aside)
        return wf_fail_nomem(err, strlen(v->name));
    WF_TRY(wf_graph_rename_value(g, v, aside, err));
    WF_TRY(wf_graph_add_value(g, name, &in, err));
    in->dtype = v->dtype;
    in->rank = v->rank;
    memcpy(in->axes, v->axes, sizeof in->axes);
    wf_graph_replace_uses(g, v, in);
    return wf_graph_add_input(g, in, err);
}

static wf_status take_inputs(part *p, size_t n_nodes, wf_err *err)
{
    for (size_t i = 0; i < n_nodes; i++)
        for (uint32_t k = 0; p->keep[i] && k < p->g->nodes[i]->n_in; k++) {
            wf_value *v = p->g->nodes[i]->in[k];

            if (v && v->producer && !p->keep[v->producer->index])
                WF_TRY(make_input(p->g, v, err));
        }
    return WF_OK;
}

static bool is_read(const part *p, const wf_value *v)
{
    for (const wf_use *u = v->first_use; u; u = u->next)
        if (p->keep[u->node->index])
            return true;
    return false;
}

/* Feeds are inputs where a node reads them; the first stage's forward part hands on the others. */
static void keep_feeds(part *p)
{
    wf_graph *g = p->g;
    size_t kept = 0;

    for (size_t i = 0; i < g->n_inputs; i++) {
        wf_value *v = g->inputs[i];

        if (is_read(p, v) || (p->stage == 0 && !p->backward))
            g->inputs[kept++] = v;
        else
            v->is_input = false;
    }
    g->n_inputs = kept;
}

static wf_status give_outputs(part *p, size_t n_nodes, wf_err *err)
{
    p->g->n_outputs = 0;
    for (size_t i = 0; i < n_nodes; i++)
        for (uint32_t k = 0; p->keep[i] && k < p->g->nodes[i]->n_out; k++) {
            wf_value *v = p->g->nodes[i]->out[k];

            if (v && p->given[v->index])
                WF_TRY(wf_graph_add_output(p->g, v, err));
        }
    return WF_OK;
}

static wf_status cut(part *p, wf_err *err)
{
    size_t n_nodes = p->g->n_nodes;

    wf_stages_mark_late(p->c, p->g, p->late);
    choose(p);
    mark_given(p);
    for (size_t i = 0; i < n_nodes; i++)
        for (uint32_t k = 0; p->keep[i] && k < p->g->nodes[i]->n_in; k++)
            if (p->g->nodes[i]->in[k])
                wf_node_set_in(p->g->nodes[i], k, made(p->g->nodes[i]->in[k]));
    keep_feeds(p);
    WF_TRY(give_outputs(p, n_nodes, err));
    WF_TRY(take_inputs(p, n_nodes, err));
    for (size_t i = 0; i < n_nodes; i++)
        p->g->nodes[i]->device = NULL; /* it names a task, and none of its devices */
    wf_graph_keep_nodes(p->g, p->keep);
    return wf_graph_check(p->g, err);
}

wf_status wf_stages_cut(const wf_compiled *c, uint32_t stage, bool backward, wf_graph **out,
                        wf_err *err)
{
    part p = {.c = c, .stage = stage, .backward = backward};
    wf_status rc = wf_graph_copy(c->graph, &p.g, err);

    if (rc == WF_OK) {
        p.late = calloc(p.g->n_nodes + 1, sizeof *p.late);
        p.keep = calloc(p.g->n_nodes + 1, sizeof *p.keep);
        p.given = calloc(p.g->n_values + 1, sizeof *p.given);
        rc = p.late && p.keep && p.given ? cut(&p, err) : wf_fail_nomem(err, p.g->n_nodes);
    }
    free(p.late);
    free(p.keep);
    free(p.given);
    if (rc != WF_OK)
        wf_graph_free(&p.g);
    *out = p.g;
    return rc;
}
