/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/remote.c */
#include "common/session/remote.h"
#include "common/base/nearest.h"
#include "common/graph/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char MODEL[] = "the session's graph";

typedef struct unit {
    const wf_remote_run *run;
    wf_remote *r;
    wf_graph *g;
    bool *needed;      /* [g->n_nodes] */
    wf_value **wanted; /* [n_wanted]: outputs of the run, each once */
    size_t n_wanted;
    wf_value **results; /* [n_fetches]: what a fetch is; NULL: the variable after a write */
    wf_value **written; /* [n_writes]: what is assigned */
    wf_fed fed;
    wf_tensor **blanks; /* [n_blanks]: shapes of variables */
    size_t n_blanks;
} unit;

typedef enum kind { OTHER = 0, READ, ASSIGN, ADD } kind;

static kind kind_of(const wf_node *n)
{
    if (!n || strcmp(n->op->domain, WF_DOMAIN_WEFT) != 0)
        return OTHER;
    if (strcmp(n->op->name, "Read") == 0)
        return READ;
    if (strcmp(n->op->name, "Assign") == 0)
        return ASSIGN;
    return strcmp(n->op->name, "AssignAdd") == 0 ? ADD : OTHER;
}

/* ---- what is wanted ---- */

static wf_status is_missing(const unit *u, const char *name, wf_err *err)
{
    const char **names = calloc(u->g->n_values + u->g->n_nodes + 1, sizeof *names), *near = NULL;
    char hint[WF_NEAREST_HINT];
    size_t n = 0;

    for (size_t i = 0; names && i < u->g->n_values; i++)
        names[n++] = u->g->values[i]->name;
    if (names)
        near = wf_nearest(name, names, n);
    if (near)
        snprintf(hint, sizeof hint, "did you mean \"%.200s\"?", near);
    free(names);
    return wf_fail(err, WF_NOTFOUND, near ? hint : "extend the session by a model that has it",
                   "%s has no value \"%.200s\"", MODEL, name);
}

/* The value of that name, or what a node of that name makes. */
static wf_status find(const unit *u, const char *name, bool or_node, wf_value **out, wf_err *err)
{
    const wf_node *n = or_node ? wf_graph_node(u->g, name) : NULL;

    *out = wf_graph_value(u->g, name);
    for (uint32_t i = 0; !*out && n && i < n->n_out; i++)
        *out = n->out[i];
    return *out ? WF_OK : is_missing(u, name, err);
}

/* Nodes are in topological order: one sweep backwards. */
static wf_status mark_needed(unit *u, wf_err *err)
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
    for (size_t i = u->g->n_nodes; rc == WF_OK && i-- > 0;) {
        const wf_node *n = u->g->nodes[i];

        for (uint32_t k = 0; k < n->n_out; k++)
            u->needed[i] |= n->out[k] && values[n->out[k]->index];
        for (uint32_t k = 0; u->needed[i] && k < n->n_in; k++)
            if (n->in[k])
                values[n->in[k]->index] = true;
    }
    free(values);
    return rc;
}

/* ---- variables and what is assigned ---- */

static wf_status check_uses(const unit *u, const wf_node *add, wf_err *err)
{
    for (size_t i = 0; i < u->g->n_nodes; i++)
        for (uint32_t k = 0; u->needed[i] && k < u->g->nodes[i]->n_in; k++)
            if (u->g->nodes[i]->in[k] == add->out[0])
                return wf_fail(err, WF_UNSUPPORTED,
                               "fetch it, and feed it to another run; or compute with what is read",
                               "%s \"%s\" computes with the result of AssignAdd \"%s\"",
                               u->g->nodes[i]->op->name, u->g->nodes[i]->name, add->name);
    return WF_OK;
}

/* Takes Read and Assign out of the way of others, and lists what is written. */
static wf_status settle_node(unit *u, const wf_node *n, wf_err *err)
{
    kind k = kind_of(n);

    if (k == OTHER)
        return WF_OK;
    if (k == READ) {
        wf_graph_replace_uses(u->g, n->out[0], n->in[0]);
        return WF_OK;
    }
    if (k == ADD)
        WF_TRY(check_uses(u, n, err));
    u->written[u->r->n_writes] = n->in[1];
    u->r->writes[u->r->n_writes++] = (wf_remote_write){
        .action = k == ADD ? WF_VARIABLE_ADD : WF_VARIABLE_ASSIGN, .variable = n->in[0]->name};
    if (k == ASSIGN)
        wf_graph_replace_uses(u->g, n->out[0], n->in[1]);
    return WF_OK;
}

/* What a fetched value is without operations on variables: nodes before it are settled. */
static wf_value *settled(wf_value *v)
{
    kind k = kind_of(v->producer);

    if (k == READ)
        return v->producer->in[0];
    return k == ASSIGN ? v->producer->in[1] : v;
}

/* The place in the list of writes of a node among those that are needed. */
static uint32_t write_of(const unit *u, const wf_node *add)
{
    uint32_t at = 0;

    for (size_t i = 0; u->g->nodes[i] != add; i++)
        at += u->needed[i] && kind_of(u->g->nodes[i]) >= ASSIGN;
    return at;
}

static void want(unit *u, wf_value *v)
{
    for (size_t i = 0; i < u->n_wanted; i++)
        if (u->wanted[i] == v)
            return;
    u->wanted[u->n_wanted++] = v;
}

static wf_status list_wanted(unit *u, wf_err *err)
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
        u->results[i] = settled(v);
        want(u, u->results[i]);
    }
    for (size_t i = 0; i < u->run->n_targets; i++) {
        WF_TRY(find(u, u->run->targets[i], true, &v, err));
        if (kind_of(v->producer) != ADD)
            want(u, settled(v));
    }
    for (size_t i = 0; i < u->r->n_writes; i++)
        want(u, u->written[i]);
    for (size_t i = 0; i < u->n_wanted; i++)
        WF_TRY(wf_graph_add_output(u->g, u->wanted[i], err));
    return WF_OK;
}

/* A variable is an input with a fixed shape; its name stays. */
static wf_status free_variables(unit *u, wf_err *err)
{
    for (size_t i = 0; i < u->g->n_values; i++) {
        wf_value *v = u->g->values[i];
        wf_tensor *nothing = NULL;

        if (v->variable == WF_VAR_NOT)
            continue;
        WF_TRY(wf_tensor_share(v->known, &u->blanks[u->n_blanks], err));
        u->n_blanks++;
        v->variable = WF_VAR_NOT;
        wf_value_set_known(v, &nothing);
        WF_TRY(wf_graph_add_input(u->g, v, err));
    }
    return WF_OK;
}

/* Feeds are held against the graph's own inputs, and variables get theirs. */
static wf_status place_feeds(unit *u, size_t n_inputs, wf_err *err)
{
    size_t own = u->g->n_inputs;
    wf_status rc;

    u->g->n_inputs = n_inputs; /* variables, behind the inputs, are not fed by name */
    rc = wf_fed_place(u->g, MODEL, u->run->n_feeds, u->run->feeds, &u->fed, err);
    u->g->n_inputs = own;
    return rc;
}

/* ---- compiling ---- */

static bool is_small_integer(const wf_tensor *t)
{
    return (wf_dtype_is_int(t->dtype) || t->dtype == WF_BOOL) && wf_elems(t) <= WF_MAX_CARRIED;
}

/* How much of the feeds' content is known to the compiler. */
typedef enum depth { SHAPES, SMALL_INTEGERS, ALL } depth;

static wf_status compile_to(unit *u, depth how, wf_err *err)
{
    size_t n_inputs = u->g->n_inputs, first = n_inputs - u->n_blanks;
    wf_compile_feed *feeds = calloc(n_inputs + 1, sizeof *feeds);
    const char **fetches = calloc(u->n_wanted + 1, sizeof *fetches);
    wf_compile_spec spec = {.graph = u->g,
                            .mode = WF_COMPILE_RUN,
                            .fetches = fetches,
                            .n_fetches = u->n_wanted,
                            .feeds = feeds};
    wf_status rc = feeds && fetches ? WF_OK : wf_fail_nomem(err, n_inputs * sizeof *feeds);

    for (size_t i = 0; rc == WF_OK && i < u->n_wanted; i++)
        fetches[i] = u->wanted[i]->name;
    for (size_t i = 0; rc == WF_OK && i < n_inputs; i++) {
        const wf_tensor *t = i < first ? u->fed.inputs[i].content : u->blanks[i - first];

        if (t)
            feeds[spec.n_feeds++] = (wf_compile_feed){
                .name = u->g->inputs[i]->name,
                .content = t,
                .is_constant =
                    i < first && (how == ALL || (how == SMALL_INTEGERS && is_small_integer(t)))};
    }
    wf_compiled_free(&u->r->compiled);
    if (rc == WF_OK)
        rc = wf_compile(&spec, &u->r->compiled, err);
    free(feeds);
    free(fetches);
    return rc;
}

static bool is_open(const wf_graph *g)
{
    int64_t dims[WF_MAX_RANK];

    for (size_t i = 0; i < g->n_values; i++)
        if (!wf_value_dims(g->values[i], dims))
            return true;
    return false;
}

static bool is_variable(const unit *u, const char *name)
{
    for (size_t i = u->g->n_inputs - u->n_blanks; i < u->g->n_inputs; i++)
        if (strcmp(u->g->inputs[i]->name, name) == 0)
            return true;
    return false;
}

static wf_status check_fed(const unit *u, char unfed[WF_UNFED_NAME], wf_err *err)
{
    const wf_graph *g = u->r->compiled->graph;

    unfed[0] = 0;
    for (size_t i = 0; i < g->n_inputs; i++) {
        const char *name = g->inputs[i]->name;

        if (is_variable(u, name) || wf_fed_find(&u->fed, name))
            continue;
        snprintf(unfed, WF_UNFED_NAME, "%s", name);
        return wf_fail(err, WF_USAGE, "feed it too", "%s wants input \"%.200s\"", MODEL, name);
    }
    return WF_OK;
}

/* With as little of the feeds' content as suffices, so that it can be used for other feeds. */
static wf_status compile(unit *u, char unfed[WF_UNFED_NAME], wf_err *err)
{
    for (depth how = SHAPES; how <= ALL; how++) {
        WF_TRY(compile_to(u, how, err));
        WF_TRY(check_fed(u, unfed, err));
        u->r->is_for_once = how > SHAPES;
        if (!is_open(u->r->compiled->graph))
            return WF_OK;
    }
    return WF_OK; /* a plan says what it lacks */
}

/* ---- the result ---- */

/* The output of the compiled graph for a value that was wanted. */
static const char *output_of(const unit *u, const wf_value *v)
{
    const wf_compiled *c = u->r->compiled;

    for (size_t i = 0; i < c->n_outputs; i++)
        if (strcmp(c->outputs[i].label, v->name) == 0)
            return c->outputs[i].name;
    return NULL;
}

static wf_status list_ports(unit *u, wf_err *err)
{
    const wf_graph *g = u->r->compiled->graph;

    u->r->reads = wf_arena_array(u->r->arena, g->n_inputs, sizeof *u->r->reads);
    u->r->feeds = wf_arena_array(u->r->arena, g->n_inputs, sizeof *u->r->feeds);
    if (!u->r->reads || !u->r->feeds)
        return wf_fail_nomem(err, g->n_inputs * sizeof *u->r->reads);
    for (size_t i = 0; i < g->n_inputs; i++) {
        if (is_variable(u, g->inputs[i]->name))
            u->r->reads[u->r->n_reads++] = g->inputs[i]->name;
        else
            u->r->feeds[u->r->n_feeds++] = g->inputs[i]->name;
    }
    for (size_t i = 0; i < u->r->n_results; i++)
        if (u->results[i])
            u->r->results[i].output = output_of(u, u->results[i]);
    for (size_t i = 0; i < u->r->n_writes; i++) {
        wf_remote_write *w = &u->r->writes[i];

        w->output = output_of(u, u->written[i]);
        w->variable = wf_arena_strdup(u->r->arena, w->variable);
        if (!w->variable)
            return wf_fail_nomem(err, 0);
    }
    return WF_OK;
}

static wf_status make_room(unit *u, const wf_graph *session, wf_err *err)
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
    u->blanks = wf_arena_array(a, u->g->n_values + 1, sizeof(*u->blanks));
    return u->needed && u->written && u->r->writes && u->wanted && u->results && u->r->results &&
                   u->blanks
               ? WF_OK
               : wf_fail_nomem(err, u->g->n_values * sizeof(*u->blanks));
}

static wf_status prepare(unit *u, const wf_graph *session, char unfed[WF_UNFED_NAME], wf_err *err)
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
    WF_TRY(list_wanted(u, err));
    n_inputs = u->g->n_inputs;
    WF_TRY(free_variables(u, err));
    WF_TRY(place_feeds(u, n_inputs, err));
    WF_TRY(compile(u, unfed, err));
    return list_ports(u, err);
}

wf_status wf_remote_prepare(const wf_graph *g, const wf_remote_run *run, wf_remote **out,
                            char unfed[WF_UNFED_NAME], wf_err *err)
{
    unit u = {.run = run, .r = calloc(1, sizeof *u.r)};
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
    wf_graph_free(&u.g);
    if (rc != WF_OK)
        wf_remote_free(&u.r);
    *out = u.r;
    return rc;
}

void wf_remote_free(wf_remote **r)
{
    if (!*r)
        return;
    wf_compiled_free(&(*r)->compiled);
    wf_arena_free(&(*r)->arena);
    free(*r);
    *r = NULL;
}
