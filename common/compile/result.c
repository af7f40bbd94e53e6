/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/result.c - what a compilation says of its graph: variables, outputs, feeds. */
#include "common/base/nearest.h"
#include "common/compile/losses/losses.h"
#include "common/compile/pass.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Headers of shared tensors, so that their storage can be let go with the result. */
typedef struct wf_shared {
    wf_tensor t;
    struct wf_shared *next;
} shared;

wf_status wf_unit_share(wf_unit *u, const wf_tensor *t, const wf_tensor **out, wf_err *err)
{
    shared *s = wf_arena_alloc(u->arena, sizeof(*s));

    if (!s)
        return wf_fail_nomem(err, sizeof(*s));
    if (t->buf) {
        s->t = *t;
        wf_buf_ref(t->buf);
    } else {
        /* Memory that someone lends may be gone before the result is. */
        wf_tensor *copy = NULL;

        WF_TRY(wf_tensor_copy(t, &copy, err));
        s->t = *copy;
        wf_buf_ref(copy->buf);
        wf_tensor_free(&copy);
    }
    s->next = u->c->shared;
    u->c->shared = s;
    *out = &s->t;
    return WF_OK;
}

void wf_compiled_free(wf_compiled **c)
{
    if (!*c)
        return;
    for (shared *s = (*c)->shared; s; s = s->next)
        wf_buf_unref(&s->t.buf);
    wf_graph_free(&(*c)->graph);
    wf_graph_free(&(*c)->ids_graph);
    wf_arena_free(&(*c)->arena);
    free(*c);
    *c = NULL;
}

wf_graph *wf_compiled_take_graph(wf_compiled *c)
{
    wf_graph *g = c->graph;

    c->graph = NULL;
    return g;
}

/* What a ps computes a table's first values from, where nothing else gave them. */
static void take_seed(const wf_unit *u, const wf_table *t, wf_compiled_variable *v)
{
    for (const wf_seeded *s = u->seeded; s; s = s->next)
        if (strcmp(s->name, t->name) == 0 && s->blank == t->initial->data) {
            v->is_seeded = true;
            v->rows = (wf_compiled_rows){
                .first = s->first, .seed = u->spec->seed, .stream = wf_initial_stream(t->name)};
        }
}

static void take_rows(const wf_unit *u, const wf_table *t, wf_compiled_variable *v)
{
    v->is_unbounded = v->is_seeded = true;
    v->row_dtype = wf_table_dtype(t);
    v->rows = (wf_compiled_rows){
        .first = t->unbounded->first,
        .seed = u->spec->seed,
        .stream = wf_initial_stream(t->name),
        .admit_after = t->conf->admit_after,
        .evict_after = t->conf->evict_after,
        .max_rows = t->conf->max_rows,
        .max_bytes = t->conf->max_bytes,
        .filter_bytes = strcmp(t->conf->admit, "bloom") == 0 ? t->conf->admit_bytes : 0,
        .by_frequency = strcmp(t->conf->evict, "least_frequently_used") == 0,
        .fails_full = strcmp(t->conf->when_full, "fail") == 0,
        .on_disk = strcmp(t->conf->when_full, "disk") == 0};
}

/* The unbounded table of that name, which the graph has in itself; NULL: none. */
static const wf_table *whole_table(const wf_unit *u, const char *name)
{
    for (size_t i = 0; !u->spec->strategy && i < u->n_tables; i++)
        if (u->tables[i].unbounded && strcmp(u->tables[i].name, name) == 0)
            return &u->tables[i];
    return NULL;
}

static wf_status add_variable(wf_unit *u, const char *name, wf_var_kind kind,
                              const wf_tensor *initial, bool on_ps, wf_err *err)
{
    wf_compiled_variable *v = &u->c->variables[u->c->n_variables];
    const wf_table *table = wf_unit_table(u, name);

    if (table) { /* what the graph has of it has no content */
        v->is_table = true;
        v->rows_most = table->rows_most;
        v->cache_rows = table->conf->cache_rows;
        v->cache_staleness = table->conf->cache_staleness;
        v->row_dtype = wf_table_dtype(table);
        v->rounding =
            wf_rng_fold(wf_rng_fold_str(u->spec->seed, "rounding"), wf_initial_stream(name));
        initial = table->initial;
        if (table->unbounded)
            take_rows(u, table, v);
        else
            take_seed(u, table, v);
    } else if (whole_table(u, name)) {
        take_rows(u, whole_table(u, name), v);
    }
    v->name = wf_arena_strdup(u->arena, name);
    if (!v->name)
        return wf_fail_nomem(err, strlen(name));
    v->dtype = initial->dtype;
    v->rank = initial->rank;
    memcpy(v->dims, initial->dims, sizeof(v->dims));
    v->elems = wf_elems(initial);
    v->bytes = wf_tensor_bytes(initial);
    v->kind = kind;
    v->on_ps = on_ps;
    u->c->n_variables++;
    return wf_unit_share(u, initial, &v->initial, err);
}

static const wf_held *find_held(const wf_unit *u, const char *name)
{
    for (size_t i = 0; i < u->n_held; i++)
        if (!strcmp(u->held[i].name, name))
            return &u->held[i];
    return NULL;
}

/* One variable where the graph first names it: a Pull or Push, or an input of a node. */
static wf_status visit(wf_unit *u, const wf_node *n, wf_err *err)
{
    bool pull = n->op->flags & WF_OP_SOURCE, push = n->op->flags & WF_OP_SINK;

    if (pull || push) {
        const char *name = wf_node_string(n, "variable", "");
        const wf_held *h = find_held(u, name);

        wf_assert(h); /* only the strategy pass makes these nodes */
        if (wf_compiled_find(u->c, name) < 0)
            WF_TRY(add_variable(u, name, h->kind, h->initial, true, err));
        u->c->variables[wf_compiled_find(u->c, name)].momentum = h->momentum;
        if (push)
            u->c->variables[wf_compiled_find(u->c, name)].pushed = true;
        if (push && h->kind == WF_VAR_TRAINABLE)
            u->c->variables[wf_compiled_find(u->c, name)].codec = wf_unit_codec(u, name);
    }
    for (uint32_t i = 0; i < n->n_in; i++) {
        const wf_value *v = n->in[i];

        if (v && v->variable != WF_VAR_NOT && v->known && wf_compiled_find(u->c, v->name) < 0)
            WF_TRY(add_variable(u, v->name, v->variable, v->known, false, err));
    }
    return WF_OK;
}

static wf_status collect_variables(wf_unit *u, wf_err *err)
{
    size_t most = u->n_held;

    for (size_t i = 0; i < u->graph->n_values; i++)
        most += u->graph->values[i]->variable != WF_VAR_NOT;
    for (size_t i = 0; i < u->n_targets; i++)
        most += !u->targets[i].gradient;
    u->c->n_variables = 0;
    u->c->variables = wf_arena_array(u->arena, most, sizeof(*u->c->variables));
    if (!u->c->variables)
        return wf_fail_nomem(err, most * sizeof(*u->c->variables));
    for (size_t i = 0; i < u->graph->n_nodes; i++)
        WF_TRY(visit(u, u->graph->nodes[i], err));
    return WF_OK;
}

/* GRAD lists every trainable variable: those that the graph lost have a zero gradient. */
static wf_status collect_unused(wf_unit *u, wf_err *err)
{
    for (size_t i = 0; i < u->n_targets; i++) {
        const wf_target *t = &u->targets[i];

        if (!t->gradient && wf_compiled_find(u->c, t->variable->name) < 0)
            WF_TRY(add_variable(u, t->variable->name, WF_VAR_TRAINABLE, t->initial, false, err));
    }
    return WF_OK;
}

static wf_status collect_outputs(wf_unit *u, wf_err *err)
{
    wf_compiled *c = u->c;

    c->n_outputs = 0;
    c->outputs = wf_arena_array(u->arena, u->n_fetches, sizeof(*c->outputs));
    if (!c->outputs)
        return wf_fail_nomem(err, u->n_fetches * sizeof(*c->outputs));
    for (size_t i = 0; i < u->n_fetches; i++) {
        const wf_fetch *f = &u->fetches[i];
        int64_t at = f->variable ? wf_compiled_find(c, f->variable) : 0;
        wf_compiled_output *o = &c->outputs[c->n_outputs++];

        o->name = f->value ? wf_arena_strdup(u->arena, f->value->name) : NULL;
        o->label = wf_arena_strdup(u->arena, f->label);
        if (!o->label || (f->value && !o->name))
            return wf_fail_nomem(err, strlen(f->label));
        o->meaning = f->meaning;
        o->per_record = f->per_record;
        o->metric = f->metric;
        o->variable = at < 0 ? 0 : (uint32_t)at;
    }
    return WF_OK;
}

static bool is_label(const wf_unit *u, const wf_value *v)
{
    for (size_t i = 0; i < u->n_goals; i++)
        if (u->goals[i].label_feed == v)
            return true;
    return false;
}

static void note_loss(const wf_unit *u, const wf_value *v, wf_compiled_feed *f)
{
    for (size_t i = 0; i < u->n_goals; i++) {
        const wf_loss_row *row = u->goals[i].label_feed == v ? u->goals[i].row : NULL;

        if (!row)
            continue;
        f->loss = row->name;
        f->is_share = row->kind == WF_LOSS_BINARY && !row->margin;
        return;
    }
}

/* Whether v is no feed: it is one already, of the other graph, the places of a table, or the scale
 * of the loss. */
static bool is_passed_over(const wf_unit *u, const wf_value *v)
{
    for (size_t i = 0; i < u->c->n_feeds; i++)
        if (!strcmp(u->c->feeds[i].name, v->name))
            return true;
    for (size_t i = 0; i < u->n_uses; i++)
        if (u->uses[i].places == v)
            return true;
    return u->loss_scale == v;
}

static wf_status add_feed(wf_unit *u, const wf_graph *g, const wf_value *v, wf_err *err)
{
    wf_compiled_feed *f = &u->c->feeds[u->c->n_feeds++];

    f->name = wf_arena_strdup(u->arena, v->name);
    if (!f->name)
        return wf_fail_nomem(err, strlen(v->name));
    f->dtype = v->dtype;
    f->rank = v->rank < 0 ? 0 : (uint32_t)v->rank;
    f->is_label = is_label(u, v);
    note_loss(u, v, f);
    wf_label_feed(g, v, f);
    memcpy(f->axes, v->axes, sizeof(f->axes));
    for (uint32_t a = 0; a < f->rank; a++) {
        f->axes[a].symbol = wf_arena_strdup(u->arena, v->axes[a].symbol);
        if (v->axes[a].symbol && !f->axes[a].symbol)
            return wf_fail_nomem(err, strlen(v->axes[a].symbol));
    }
    return WF_OK;
}

static wf_status collect_feeds(wf_unit *u, wf_err *err)
{
    wf_compiled *c = u->c;
    const wf_graph *graphs[] = {u->graph, c->ids_graph};
    size_t most = u->graph->n_inputs + (c->ids_graph ? c->ids_graph->n_inputs : 0);

    c->n_feeds = 0;
    c->feeds = wf_arena_array(u->arena, most, sizeof(*c->feeds));
    if (!c->feeds)
        return wf_fail_nomem(err, most * sizeof(*c->feeds));
    for (size_t k = 0; k < WF_COUNT(graphs); k++)
        for (size_t i = 0; graphs[k] && i < graphs[k]->n_inputs; i++)
            if (!is_passed_over(u, graphs[k]->inputs[i]))
                WF_TRY(add_feed(u, graphs[k], graphs[k]->inputs[i], err));
    return WF_OK;
}

/* A place that no node reads any more was pruned. */
wf_status wf_unit_collect_uses(wf_unit *u, wf_err *err)
{
    wf_compiled *c = u->c;

    c->uses = wf_arena_array(u->arena, u->n_uses, sizeof(*c->uses));
    if (!c->uses)
        return wf_fail_nomem(err, u->n_uses * sizeof(*c->uses));
    for (size_t i = 0; i < u->n_uses; i++) {
        const wf_table_use *use = &u->uses[i];
        int64_t at = wf_compiled_find(c, use->table->name);
        wf_compiled_use *to = &c->uses[c->n_uses];

        if (at < 0 || !use->places->is_input)
            continue;
        *to = (wf_compiled_use){.variable = (uint32_t)at,
                                .places = wf_arena_strdup(u->arena, use->places->name),
                                .ids = use->ids,
                                .is_bag = use->is_bag};
        if (!to->places)
            return wf_fail_nomem(err, strlen(use->table->name));
        c->n_uses++;
    }
    return WF_OK;
}

wf_status wf_unit_collect(wf_unit *u, wf_err *err)
{
    WF_TRY(collect_variables(u, err));
    if (u->spec->mode == WF_COMPILE_GRAD)
        WF_TRY(collect_unused(u, err));
    WF_TRY(collect_outputs(u, err));
    if (u->loss_scale) {
        u->c->loss_scale = wf_arena_strdup(u->arena, u->loss_scale->name);
        if (!u->c->loss_scale)
            return wf_fail_nomem(err, strlen(u->loss_scale->name));
    }
    return collect_feeds(u, err);
}

int64_t wf_compiled_find(const wf_compiled *c, const char *name)
{
    for (size_t i = 0; i < c->n_variables; i++)
        if (!strcmp(c->variables[i].name, name))
            return (int64_t)i;
    return -1;
}

static wf_status no_such_variable(const wf_compiled *c, const char *name, wf_err *err)
{
    const char **names = calloc(c->n_variables + 1, sizeof(*names)), *near = NULL;
    wf_status rc;

    for (size_t i = 0; names && i < c->n_variables; i++)
        names[i] = c->variables[i].name;
    if (names)
        near = wf_nearest(name, names, c->n_variables);
    rc = wf_fail(err, WF_NOTFOUND, "give the weights of this model",
                 "the model has no variable \"%s\"%s%s%s", name, near ? "; did you mean \"" : "",
                 near ? near : "", near ? "\"?" : "");
    free(names);
    return rc;
}

wf_status wf_compiled_set_variable(wf_compiled *c, const char *name, wf_tensor **content,
                                   wf_err *err)
{
    wf_value *v = c->graph ? wf_graph_value(c->graph, name) : NULL;
    int64_t at = wf_compiled_find(c, name);
    char ours[96], theirs[96];

    if (at < 0 || !v || v->variable == WF_VAR_NOT)
        return no_such_variable(c, name, err);
    if (v->dtype != (*content)->dtype || v->known->rank != (*content)->rank ||
        memcmp(v->known->dims, (*content)->dims, v->known->rank * sizeof(int64_t)) != 0)
        return wf_fail(err, WF_SHAPE, "give the weights of this model",
                       "variable \"%s\" is %s%s, the content for it %s%s", name,
                       wf_dtype_name(v->dtype),
                       wf_dims_str(v->known->rank, v->known->dims, ours, sizeof(ours)),
                       wf_dtype_name((*content)->dtype),
                       wf_dims_str((*content)->rank, (*content)->dims, theirs, sizeof(theirs)));
    wf_value_set_known(v, content);
    return WF_OK;
}
