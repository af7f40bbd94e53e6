/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/stage_edges.c - the edges between the stages of a divided model: a Send and a Recv
 * on each, and their list. */
#include "common/base/size.h"
#include "common/compile/pass.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char TASK[] = "/job:worker/task:";

wf_status wf_stages_name(wf_unit *u, wf_err *err)
{
    for (uint32_t i = 0; i < u->spec->n_stages; i++) {
        const wf_stage_home *h = &u->spec->stage_homes[i];

        u->c->stage_marks[i] =
            h->device ? wf_arena_printf(u->arena, "%s%u/device:%s", TASK, h->worker, h->device)
                      : wf_arena_printf(u->arena, "%s%u", TASK, h->worker);
        if (!u->c->stage_marks[i])
            return wf_fail_nomem(err, sizeof TASK);
    }
    u->c->n_stages = u->spec->n_stages;
    return WF_OK;
}

uint32_t wf_stage_of_node(const wf_compiled *c, const wf_node *n)
{
    uint32_t s = 0;

    while (n->device && s + 1 < c->n_stages && strcmp(c->stage_marks[s], n->device) != 0)
        s++;
    return s;
}

void wf_stages_mark_late(const wf_compiled *c, const wf_graph *g, bool late[])
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        const wf_node *n = g->nodes[i];

        late[i] = false;
        for (uint32_t k = 0; k < n->n_in; k++) {
            const wf_node *p = n->in[k] ? n->in[k]->producer : NULL;

            late[i] |= p && (late[p->index] || wf_stage_of_node(c, p) > wf_stage_of_node(c, n));
        }
    }
}

bool wf_value_sizes(const wf_value *v, int64_t sizes[WF_MAX_RANK])
{
    for (int32_t i = 0; i < v->rank; i++) {
        const wf_axis *axis = &v->axes[i];
        long long factor = 1;
        char *end = NULL;

        sizes[i] = axis->size;
        if (axis->size >= 0)
            continue;
        if (axis->symbol && axis->symbol[0] >= '0' && axis->symbol[0] <= '9')
            factor = strtoll(axis->symbol, &end, 10);
        if (!axis->symbol || factor <= 0 || (end && *end != '*'))
            return false;
        sizes[i] = -factor;
    }
    return v->rank >= 0;
}

/* Extents of a job follow from the batch alone: they are fixed, or a multiple of the records. */
static wf_status set_sizes(const wf_unit *u, const wf_value *v, wf_compiled_edge *e, wf_err *err)
{
    wf_status rc = WF_OK;

    e->rank = (uint32_t)v->rank;
    if (v->carried)
        rc = wf_fail(
            err, WF_UNSUPPORTED, "divide the model at another layer",
            "place: shapes at one worker follow from \"%.200s\", which is computed at another",
            v->name);
    else if (!wf_value_sizes(v, e->sizes))
        rc = wf_fail(err, WF_UNSUPPORTED, "divide the model at another layer",
                     "place: \"%.200s\", which goes from one worker to another, has an extent "
                     "that is no multiple of the batch",
                     v->name);
    return rc == WF_OK ? WF_OK : wf_unit_in_file(u, u->spec->place_line, rc, err);
}

static wf_status add_edge(const wf_unit *u, const wf_value *v, uint32_t from, uint32_t to,
                          bool is_result, wf_err *err)
{
    wf_compiled *c = u->c;
    wf_compiled_edge *e = &c->edges[c->n_edges];

    for (size_t i = 0; i < c->n_edges; i++)
        if (c->edges[i].to == to && c->edges[i].is_result == is_result &&
            strcmp(c->edges[i].name, v->name) == 0)
            return WF_OK;
    wf_assert(v->rank >= 0 && v->rank <= WF_MAX_RANK);
    *e = (wf_compiled_edge){.name = wf_arena_strdup(u->arena, v->name),
                            .dtype = v->dtype,
                            .from = from,
                            .to = to,
                            .is_result = is_result};
    if (!e->name)
        return wf_fail_nomem(err, strlen(v->name));
    c->n_edges++;
    return set_sizes(u, v, e, err);
}

/* What n reads of other stages. */
static wf_status add_reads(const wf_stages *s, const wf_node *n, wf_err *err)
{
    uint32_t to = s->of[n->index];

    for (uint32_t k = 0; k < n->n_in; k++) {
        const wf_value *v = n->in[k];
        uint32_t from;

        if (!v || (!v->producer && !v->is_input))
            continue;
        from = v->producer ? s->of[v->producer->index] : 0;
        if (from != to)
            WF_TRY(add_edge(s->u, v, from, to, false, err));
    }
    return WF_OK;
}

static wf_status list_edges(const wf_stages *s, wf_err *err)
{
    const wf_graph *g = s->u->graph;
    wf_compiled *c = s->u->c;
    size_t most = g->n_outputs;

    for (size_t i = 0; i < g->n_nodes; i++)
        most += g->nodes[i]->n_in;
    c->edges = wf_arena_array(s->u->arena, most + 1, sizeof *c->edges);
    if (!c->edges)
        return wf_fail_nomem(err, most * sizeof *c->edges);
    for (size_t i = 0; i < g->n_nodes; i++)
        WF_TRY(add_reads(s, g->nodes[i], err));
    for (size_t i = 0; i < g->n_outputs; i++) {
        const wf_value *v = g->outputs[i];
        uint32_t from = v->producer ? s->of[v->producer->index] : 0;

        if (from != 0)
            WF_TRY(add_edge(s->u, v, from, 0, true, err));
    }
    return WF_OK;
}

static wf_status mark_nodes(const wf_stages *s, wf_err *err)
{
    wf_graph *g = s->u->graph;

    for (size_t i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i]->device)
            return wf_unit_in_file(s->u, s->u->spec->place_line,
                                   wf_fail(err, WF_UNSUPPORTED, "leave \"device\" of the layer out",
                                           "place: \"%.200s\" is for the device %s, and a stage "
                                           "computes on one device, which place names",
                                           g->nodes[i]->name, g->nodes[i]->device),
                                   err);
        g->nodes[i]->device = wf_arena_strdup(g->arena, s->u->c->stage_marks[s->of[i]]);
        if (!g->nodes[i]->device)
            return wf_fail_nomem(err, sizeof TASK);
    }
    return WF_OK;
}

static wf_status add_end(wf_graph *g, const char *op, const char *key, const char *mark,
                         wf_value *in, wf_value **out, wf_err *err)
{
    wf_node *n;
    char hint[32];

    snprintf(hint, sizeof hint, "%s/", op);
    WF_TRY(wf_graph_add_value_like(g, key, out, err));
    WF_TRY(
        wf_graph_add_node_like(g, wf_op_find(WF_DOMAIN_WEFT, op), hint, 1, &in, 1, out, &n, err));
    WF_TRY(wf_node_set_string(g, n, "key", key, err));
    n->device = wf_arena_strdup(g->arena, mark);
    if (!n->device)
        return wf_fail_nomem(err, sizeof TASK);
    return wf_infer_node(g, n, err);
}

/* The readers of v at stage `to` read what comes in there. */
static void read_there(const wf_compiled *c, wf_value *v, uint32_t to, wf_value *received)
{
    for (const wf_use *u = v->first_use, *next; u; u = next) {
        wf_node *n = u->node;

        next = u->next;
        if (!wf_node_is(n, WF_DOMAIN_WEFT, "Send") && wf_stage_of_node(c, n) == to)
            wf_node_set_in(n, (uint32_t)(u - n->uses), received);
    }
}

static wf_status connect_edge(wf_unit *u, const wf_compiled_edge *e, wf_err *err)
{
    wf_graph *g = u->graph;
    wf_value *v = wf_graph_value(g, e->name), *sent, *received;
    const char *const *marks = u->c->stage_marks;
    char *key = wf_arena_printf(g->arena, "%u-%u/%s", e->from, e->to, e->name);

    if (!key)
        return wf_fail_nomem(err, strlen(e->name));
    WF_TRY(add_end(g, "Send", key, marks[e->from], v, &sent, err));
    WF_TRY(add_end(g, "Recv", key, marks[e->to], sent, &received, err));
    read_there(u->c, v, e->to, received);
    return WF_OK;
}

/* Activations go to later stages, and gradients to earlier ones: else micro-batches that follow
 * each other would wait for each other. */
static wf_status check_directions(const wf_unit *u, const bool late[], wf_err *err)
{
    for (size_t i = 0; i < u->c->n_edges; i++) {
        const wf_compiled_edge *e = &u->c->edges[i];
        const wf_node *from = wf_graph_value(u->graph, e->name)->producer;
        const wf_stage_home *homes = u->spec->stage_homes;
        char here[96], there[96];

        if (from && e->from < e->to && late[from->index])
            return wf_unit_in_file(
                u, u->spec->place_line,
                wf_fail(err, WF_UNSUPPORTED, "divide the model at another layer",
                        "place: \"%.200s\" goes from %s to %s, and depends on what comes back "
                        "from there",
                        e->name, wf_stage_home_str(&homes[e->from], here, sizeof here),
                        wf_stage_home_str(&homes[e->to], there, sizeof there)),
                err);
    }
    return WF_OK;
}

wf_status wf_stages_connect(const wf_stages *s, wf_err *err)
{
    wf_unit *u = s->u;
    wf_status rc;
    bool *late;

    WF_TRY(list_edges(s, err));
    WF_TRY(mark_nodes(s, err));
    late = calloc(u->graph->n_nodes + 1, sizeof *late);
    if (!late)
        return wf_fail_nomem(err, u->graph->n_nodes);
    wf_stages_mark_late(u->c, u->graph, late);
    rc = check_directions(u, late, err);
    free(late);
    if (rc != WF_OK)
        return rc;
    for (size_t i = 0; i < u->c->n_edges; i++)
        if (!u->c->edges[i].is_result)
            WF_TRY(connect_edge(u, &u->c->edges[i], err));
    return wf_graph_sort(u->graph, err);
}
