/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/remote.c */
#include "common/session/remote.h"
#include "common/base/nearest.h"
#include "common/graph/op.h"
#include "common/session/remote_unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind { OTHER = 0, READ, SEND, RECV, ASSIGN, ADD } kind;

static kind kind_of(const wf_node *n)
{
    static const char *const names[] = {[READ] = "Read",
                                        [SEND] = "Send",
                                        [RECV] = "Recv",
                                        [ASSIGN] = "Assign",
                                        [ADD] = "AssignAdd"};

    if (!n || strcmp(n->op->domain, WF_DOMAIN_WEFT) != 0)
        return OTHER;
    for (kind k = READ; k <= ADD; k++)
        if (strcmp(n->op->name, names[k]) == 0)
            return k;
    return OTHER;
}

/* ---- what is wanted ---- */

static wf_status is_missing(const wf_remote_unit *u, const char *name, bool or_node, wf_err *err)
{
    const char **names = calloc(u->g->n_values + u->g->n_nodes + 1, sizeof *names), *near = NULL;
    char hint[WF_NEAREST_HINT];
    size_t n = 0;

    for (size_t i = 0; names && i < u->g->n_values; i++)
        names[n++] = u->g->values[i]->name;
    for (size_t i = 0; names && or_node && i < u->g->n_nodes; i++)
        names[n++] = u->g->nodes[i]->name;
    if (names)
        near = wf_nearest(name, names, n);
    if (near)
        snprintf(hint, sizeof hint, "did you mean \"%.200s\"?", near);
    free(names);
    return wf_fail(err, WF_NOTFOUND, near ? hint : "extend the session by a model that has it",
                   "%s has no value%s \"%.200s\"", WF_REMOTE_MODEL, or_node ? " or node" : "",
                   name);
}

/* The value of that name, or what a node of that name makes. */
static wf_status find(const wf_remote_unit *u, const char *name, bool or_node, wf_value **out,
                      wf_err *err)
{
    const wf_node *n = or_node ? wf_graph_node(u->g, name) : NULL;

    *out = wf_graph_value(u->g, name);
    for (uint32_t i = 0; !*out && n && i < n->n_out; i++)
        *out = n->out[i];
    return *out ? WF_OK : is_missing(u, name, or_node, err);
}

/* Nodes are in topological order: one sweep backwards. */
static wf_status mark_needed(wf_remote_unit *u, wf_err *err)
{
    bool *values = calloc(u->g->n_values + 1, sizeof *values);
    wf_status rc = values ? WF_OK : wf_fail_nomem(err, u->g->n_values);
    wf_value *v = NULL;

    for (size_t i = 0; rc == WF_OK && i < u->run->n_fetches; i++) {
        rc = find(u, u->run->fetches[i], false, &v, err);
        if (rc == WF_OK)
            values[v->index] = true;
    }
    for (size_t i = 0; rc == WF_OK && i < u->run->n_targets; i++) {
        rc = find(u, u->run->targets[i], true, &v, err);
        if (rc == WF_OK)
            values[v->index] = true;
    }
    if (rc == WF_OK)
        wf_remote_mark_needed(u, values);
    free(values);
    return rc;
}

/* ---- variables, what is assigned, what comes and goes ---- */

/* Whether a node that is needed computes with what n makes. */
static bool is_used(const wf_remote_unit *u, const wf_node *n)
{
    for (const wf_use *use = n->out[0]->first_use; use; use = use->next)
        if (u->needed[use->node->index])
            return true;
    return false;
}

static void add_write(wf_remote_unit *u, const wf_node *n, kind k)
{
    u->written[u->r->n_writes] = n->in[1];
    u->writer[u->r->n_writes] = n;
    u->r->writes[u->r->n_writes++] = (wf_remote_write){
        .action = k == ADD ? WF_VARIABLE_ADD : WF_VARIABLE_ASSIGN, .variable = n->in[0]->name};
}

/* Takes operations that nobody computes out of the way of others, and lists what they do. */
static wf_status settle_node(wf_remote_unit *u, wf_node *n, wf_err *err)
{
    switch (kind_of(n)) {
    case READ:
        wf_graph_replace_uses(u->g, n->out[0], n->in[0]);
        return WF_OK;
    case SEND:
        return wf_remote_settle_send(u, n, err);
    case RECV:
        return wf_remote_settle_recv(u, n, err);
    case ASSIGN:
        add_write(u, n, ASSIGN);
        wf_graph_replace_uses(u->g, n->out[0], n->in[1]);
        return WF_OK;
    case ADD:
        add_write(u, n, ADD);
        return is_used(u, n) ? wf_remote_settle_sum(u, n, err) : WF_OK;
    default:
        return WF_OK;
    }
}

/* Sums that are computed with come first; else the order is the graph's. */
static wf_status sort_writes(wf_remote_unit *u, wf_err *err)
{
    size_t n = u->r->n_writes, at = 0;
    wf_remote_write *writes = wf_arena_array(u->r->arena, n + 1, sizeof *writes);
    wf_value **written = wf_arena_array(u->r->arena, n + 1, sizeof(*written));
    const wf_node **writer = wf_arena_array(u->r->arena, n + 1, sizeof(*writer));

    if (!writes || !written || !writer)
        return wf_fail_nomem(err, n * sizeof *writes);
    for (int late = 0; late <= 1; late++)
        for (size_t i = 0; i < n; i++) {
            const wf_remote_arrival *a = wf_remote_arrival_of(u, u->writer[i]);

            if ((a == NULL) != (late == 1))
                continue;
            writes[at] = u->r->writes[i];
            writes[at].after = a ? a->value->name : NULL;
            written[at] = u->written[i];
            writer[at++] = u->writer[i];
        }
    u->r->writes = writes;
    u->written = written;
    u->writer = writer;
    return WF_OK;
}

/* What a value is without those operations: nodes before it are settled. */
static wf_value *settled(wf_remote_unit *u, wf_value *v)
{
    const wf_remote_arrival *a = wf_remote_arrival_of(u, v->producer);

    if (a && v->producer)
        return a->value;
    switch (kind_of(v->producer)) {
    case READ:
    case SEND:
        return v->producer->in[0];
    case ASSIGN:
        return v->producer->in[1];
    default:
        return v;
    }
}

/* The place in the list of writes of a node among them. */
static uint32_t write_of(const wf_remote_unit *u, const wf_node *add)
{
    uint32_t at = 0;

    while (u->writer[at] != add)
        at++;
    return at;
}

static void want(wf_remote_unit *u, wf_value *v)
{
    for (size_t i = 0; i < u->n_wanted; i++)
        if (u->wanted[i] == v)
            return;
    u->wanted[u->n_wanted++] = v;
}

static wf_status add_output(wf_graph *g, wf_value *v, wf_err *err)
{
    for (size_t i = 0; i < g->n_outputs; i++)
        if (g->outputs[i] == v)
            return WF_OK;
    return wf_graph_add_output(g, v, err);
}

static wf_status list_wanted(wf_remote_unit *u, wf_err *err)
{
    wf_value *v = NULL;

    for (size_t i = 0; i < u->run->n_fetches; i++) {
        wf_remote_result *result = &u->r->results[u->r->n_results++];

        WF_TRY(find(u, u->run->fetches[i], false, &v, err));
        result->label = wf_arena_strdup(u->r->arena, u->run->fetches[i]);
        if (!result->label)
            return wf_fail_nomem(err, strlen(u->run->fetches[i]));
        if (kind_of(v->producer) == ADD) {
            result->write = write_of(u, v->producer);
            continue;
        }
        u->results[i] = settled(u, v);
        want(u, u->results[i]);
    }
    for (size_t i = 0; i < u->run->n_targets; i++) {
        WF_TRY(find(u, u->run->targets[i], true, &v, err));
        if (kind_of(v->producer) != ADD && kind_of(v->producer) != SEND)
            want(u, settled(u, v));
    }
    for (size_t i = 0; i < u->r->n_writes; i++)
        want(u, u->written[i]);
    for (size_t i = 0; i < u->n_wanted; i++)
        WF_TRY(add_output(u->g, u->wanted[i], err));
    for (size_t i = 0; i < u->n_leaving; i++)
        WF_TRY(add_output(u->g, u->leaving[i].value, err));
    return WF_OK;
}

/* A variable is an input with a fixed shape; its name stays. */
static wf_status free_variables(wf_remote_unit *u, wf_err *err)
{
    for (size_t i = 0; i < u->g->n_values; i++) {
        wf_value *v = u->g->values[i];
        wf_tensor *nothing = NULL;

        if (v->variable == WF_VAR_NOT)
            continue;
        WF_TRY(wf_tensor_share(v->known, &u->blanks[u->n_blanks], err));
        u->n_blanks = ++u->n_variables;
        v->variable = WF_VAR_NOT;
        wf_value_set_known(v, &nothing);
        WF_TRY(wf_graph_add_input(u->g, v, err));
    }
    return WF_OK;
}

/* A node that the run does not compute is not to make it fail, by the shape of a feed say. Sends
 * and what makes arrivals stay: their attributes are read later. */
static wf_status drop_others(wf_remote_unit *u, wf_err *err)
{
    bool *keep;

    WF_TRY(wf_remote_mark_settled(u, err));
    keep = calloc(u->g->n_nodes + 1, sizeof *keep);
    if (!keep)
        return wf_fail_nomem(err, u->g->n_nodes);
    memcpy(keep, u->needed, u->g->n_nodes * sizeof *keep);
    for (size_t i = 0; i < u->n_arrivals; i++)
        keep[u->arrivals[i].node->index] = true;
    for (size_t i = 0; i < u->n_leaving; i++)
        keep[u->leaving[i].node->index] = true;
    wf_graph_keep_nodes(u->g, keep);
    free(keep);
    return WF_OK;
}

/* Feeds are held against the graph's own inputs, and variables get theirs. */
static wf_status place_feeds(wf_remote_unit *u, size_t n_inputs, wf_err *err)
{
    size_t own = u->g->n_inputs;
    wf_status rc;

    u->g->n_inputs = n_inputs; /* variables, behind the inputs, are not fed by name */
    rc = wf_fed_place(u->g, WF_REMOTE_MODEL, u->run->n_feeds, u->run->feeds, &u->fed, err);
    u->g->n_inputs = own;
    return rc;
}

/* ---- the result ---- */

/* Names that outlive the graph that is settled. */
static wf_status name_values(wf_remote_unit *u, wf_err *err)
{
    for (size_t i = 0; i < u->r->n_results; i++)
        if (u->results[i])
            WF_TRY(wf_remote_name(u, u->results[i]->name, &u->r->results[i].value, err));
    for (size_t i = 0; i < u->r->n_writes; i++) {
        wf_remote_write *w = &u->r->writes[i];

        WF_TRY(wf_remote_name(u, w->variable, &w->variable, err));
        WF_TRY(wf_remote_name(u, u->written[i]->name, &w->value, err));
        if (w->after)
            WF_TRY(wf_remote_name(u, w->after, &w->after, err));
    }
    return WF_OK;
}

static bool is_wanted(const wf_remote_unit *u, const wf_value *v)
{
    for (size_t i = 0; i < u->n_wanted; i++)
        if (u->wanted[i] == v)
            return true;
    return false;
}

static bool is_taken(const wf_remote *r, const char *name)
{
    for (size_t i = 0; i < r->n_fragments; i++)
        for (size_t k = 0; k < r->fragments[i].n_inputs; k++)
            if (strcmp(r->fragments[i].inputs[k], name) == 0)
                return true;
    return false;
}

/* The inputs that fragments take, or that are fetched or assigned as they are. */
static wf_status list_inputs(wf_remote_unit *u, char unfed[WF_UNFED_NAME], wf_err *err)
{
    const wf_graph *g = u->g;
    size_t first = wf_remote_first_variable(u);
    size_t end = first + u->n_variables; /* what arrives is behind them */

    u->r->reads = wf_arena_array(u->r->arena, g->n_inputs, sizeof *u->r->reads);
    u->r->feeds = wf_arena_array(u->r->arena, g->n_inputs, sizeof(*u->r->feeds));
    if (!u->r->reads || !u->r->feeds)
        return wf_fail_nomem(err, g->n_inputs * sizeof *u->r->reads);
    for (size_t i = 0; i < end; i++) {
        const wf_value *v = g->inputs[i];

        if (!is_wanted(u, v) && !is_taken(u->r, v->name))
            continue;
        if (i >= first) {
            u->r->reads[u->r->n_reads++] = v->name;
            continue;
        }
        if (!u->fed.inputs[i].content) {
            snprintf(unfed, WF_UNFED_NAME, "%s", v->name);
            return wf_fail(err, WF_USAGE, "feed it too", "%s wants input \"%.200s\"",
                           WF_REMOTE_MODEL, v->name);
        }
        u->r->feeds[u->r->n_feeds++] = v;
    }
    return WF_OK;
}

static wf_status make_room(wf_remote_unit *u, const wf_graph *session, wf_err *err)
{
    wf_arena *a = u->r->arena;
    size_t fetches = u->run->n_fetches, targets = u->run->n_targets;

    WF_TRY(wf_graph_copy(session, &u->g, err));
    u->needed = wf_arena_array(a, u->g->n_nodes + 1, sizeof *u->needed);
    u->written = wf_arena_array(a, u->g->n_nodes + 1, sizeof(*u->written));
    u->r->writes = wf_arena_array(a, u->g->n_nodes + 1, sizeof *u->r->writes);
    u->wanted = wf_arena_array(a, u->g->n_nodes + fetches + targets + 1, sizeof(*u->wanted));
    u->results = wf_arena_array(a, fetches + 1, sizeof(*u->results));
    u->r->results = wf_arena_array(a, fetches + 1, sizeof *u->r->results);
    u->writer = wf_arena_array(a, u->g->n_nodes + 1, sizeof(*u->writer));
    u->blanks = wf_arena_array(a, u->g->n_values + WF_REMOTE_FAR, sizeof(*u->blanks));
    return u->needed && u->written && u->writer && u->r->writes && u->wanted && u->results &&
                   u->r->results && u->blanks
               ? WF_OK
               : wf_fail_nomem(err, u->g->n_values * sizeof(*u->blanks));
}

static wf_status prepare(wf_remote_unit *u, const wf_graph *session, char unfed[WF_UNFED_NAME],
                         wf_err *err)
{
    size_t n_inputs;

    if (u->run->n_fetches + u->run->n_targets == 0)
        return wf_fail(err, WF_USAGE, "name what is to be computed",
                       "a run without fetches and targets");
    WF_TRY(make_room(u, session, err));
    WF_TRY(mark_needed(u, err));
    for (size_t i = 0; i < u->g->n_nodes; i++)
        if (u->needed[i])
            WF_TRY(settle_node(u, u->g->nodes[i], err));
    WF_TRY(sort_writes(u, err));
    WF_TRY(list_wanted(u, err));
    n_inputs = u->g->n_inputs;
    WF_TRY(free_variables(u, err));
    WF_TRY(wf_remote_add_arrivals(u, err));
    WF_TRY(drop_others(u, err));
    WF_TRY(place_feeds(u, n_inputs, err));
    WF_TRY(name_values(u, err));
    WF_TRY(wf_remote_compile(u, unfed, err));
    return list_inputs(u, unfed, err);
}

wf_status wf_remote_name(wf_remote_unit *u, const char *name, const char **out, wf_err *err)
{
    *out = wf_arena_strdup(u->r->arena, name);
    return *out ? WF_OK : wf_fail_nomem(err, strlen(name));
}

wf_status wf_remote_prepare(const wf_graph *g, const wf_remote_run *run, wf_remote **out,
                            char unfed[WF_UNFED_NAME], wf_err *err)
{
    wf_remote_unit u = {.run = run, .r = calloc(1, sizeof *u.r)};
    wf_status rc;

    *out = NULL;
    unfed[0] = 0;
    if (!u.r)
        return wf_fail_nomem(err, sizeof *u.r);
    u.r->arena = wf_arena_new(0);
    rc = u.r->arena ? prepare(&u, g, unfed, err) : wf_fail_nomem(err, sizeof *u.r);
    wf_fed_close(&u.fed);
    for (size_t i = 0; i < u.n_blanks; i++)
        wf_tensor_free(&u.blanks[i]);
    u.r->graph = u.g; /* reads and feeds are in it */
    if (rc != WF_OK)
        wf_remote_free(&u.r);
    *out = u.r;
    return rc;
}

void wf_remote_free(wf_remote **r)
{
    if (!*r)
        return;
    for (size_t i = 0; i < (*r)->n_fragments; i++)
        wf_compiled_free(&(*r)->fragments[i].compiled);
    wf_graph_free(&(*r)->graph);
    wf_arena_free(&(*r)->arena);
    free(*r);
    *r = NULL;
}
