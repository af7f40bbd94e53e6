/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/weights.c - which values are variables, where they begin and which of them stay
 * there: the patterns of `trainable`, first weights out of a file, by name, the patterns of
 * `freeze`, and those of `tables`, of which tables.c makes what they say.
 *
 * A frozen variable keeps its content and gets no gradient; it leaves the graph in frozen.c. A
 * BatchNormalization whose running values are frozen normalises by them. Which are frozen counts
 * for the digest: a checkpoint holds the others only.
 */
#include "common/base/nearest.h"
#include "common/compile/pass.h"
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Whether a BatchNormalization keeps its running mean or variance there: files have these as
 * constants, and they are variables all the same. */
static bool is_running(const wf_graph *g, const wf_value *v)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        const wf_node *n = g->nodes[i];

        for (uint32_t k = 3; k < n->n_in && k < 5; k++) {
            const wf_value *source = n->in[k];

            if (!wf_node_is(n, WF_DOMAIN_ONNX, "BatchNormalization"))
                break;
            while (source && wf_node_is(source->producer, WF_DOMAIN_ONNX, "Identity"))
                source = source->producer->in[0];
            if (source == v)
                return true;
        }
    }
    return false;
}

bool wf_is_variable(const wf_graph *g, const wf_value *v)
{
    if (!v->known || v->producer || v->is_input)
        return false;
    return v->variable != WF_VAR_NOT || (wf_dtype_is_float(v->dtype) && is_running(g, v));
}

/* The variable named most like `name`, or NULL. */
static const char *nearest_variable(const wf_unit *u, const char *name)
{
    const wf_graph *g = u->graph;
    const char **names = calloc(g->n_values + 1, sizeof(*names)), *near = NULL;
    size_t n = 0;

    for (size_t i = 0; names && i < g->n_values; i++)
        if (wf_is_variable(g, g->values[i]))
            names[n++] = g->values[i]->name;
    if (names)
        near = wf_nearest(name, names, n);
    free(names);
    return near;
}

/* ---- patterns of names: trainable, freeze ---- */

typedef struct patterns {
    const char *key; /* for messages */
    int line;
    const char *const *list; /* [n] */
    size_t n;
    wf_may_match *may;          /* what they choose among */
    const char *among;          /* that in a word */
    wf_var_kind kind;           /* what they make of it; NOT: a table */
    const wf_conf_table *table; /* what the job says of that */
    uint64_t seed;              /* of what the digest gets for it */
} patterns;

/* The name most like `pattern` among those that may be chosen, or NULL. */
static const char *nearest_match(const wf_unit *u, wf_may_match *may, const char *pattern)
{
    const wf_graph *g = u->graph;
    const char **names = calloc(g->n_values + 1, sizeof(*names)), *near = NULL;
    size_t n = 0;

    for (size_t i = 0; names && i < g->n_values; i++)
        if (may(g, g->values[i]))
            names[n++] = g->values[i]->name;
    if (n)
        near = wf_nearest(pattern, names, n);
    if (!near && n && *pattern)
        near = names[0];
    free(names);
    return near;
}

wf_status wf_matches_nothing(const wf_unit *u, const char *key, int line, const char *pattern,
                             wf_may_match *may, const char *among, wf_err *err)
{
    char plain[128];
    const char *near;
    size_t n = 0;

    for (const char *c = pattern; *c && n + 1 < sizeof(plain); c++)
        if (*c != '*' && *c != '?')
            plain[n++] = *c;
    plain[n] = 0;
    near = nearest_match(u, may, plain);
    return wf_unit_in_file(u, line,
                           wf_fail(err, WF_USAGE, NULL, "%s: \"%.200s\" matches no %s%s%s%s", key,
                                   pattern, among, near ? "; there is \"" : "", near ? near : "",
                                   near ? "\"" : ""),
                           err);
}

/* Makes v what the patterns say; false: it was that before. There is room in u->tables. */
static bool mark(wf_unit *u, wf_value *v, const patterns *p)
{
    if (p->kind != WF_VAR_NOT) {
        bool changes = v->variable != p->kind;

        v->variable = p->kind;
        return changes;
    }
    for (size_t i = 0; i < u->n_tables; i++)
        if (u->tables[i].value == v)
            return false;
    u->tables[u->n_tables++] = (wf_table){.name = v->name, .conf = p->table, .value = v};
    return true;
}

/* Which variables are frozen or tables, or are variables at all, counts for the digest: a
 * checkpoint holds the trained ones, and of each kind in its way. */
static wf_status choose(wf_unit *u, const patterns *p, wf_err *err)
{
    uint64_t digest = u->c->digest;

    for (size_t i = 0; i < p->n; i++) {
        bool any = false;

        for (size_t k = 0; k < u->graph->n_values; k++) {
            wf_value *v = u->graph->values[k];

            if (fnmatch(p->list[i], v->name, 0) != 0 || !p->may(u->graph, v))
                continue;
            any = true;
            if (mark(u, v, p)) /* the sum over all names, in whatever order they come */
                digest += XXH3_64bits_withSeed(v->name, strlen(v->name), p->seed);
        }
        if (!any)
            return wf_matches_nothing(u, p->key, p->line, p->list[i], p->may, p->among, err);
    }
    u->c->digest = digest;
    return WF_OK;
}

static wf_status freeze(wf_unit *u, wf_err *err)
{
    return choose(u,
                  &(patterns){.key = "freeze",
                              .line = u->spec->freeze_line,
                              .list = u->spec->freeze,
                              .n = u->spec->n_freeze,
                              .may = wf_is_variable,
                              .among = "variable",
                              .kind = WF_VAR_FROZEN},
                  err);
}

/* Floats that are given with the model: constants, and what the file calls frozen. */
static bool may_train(const wf_graph *g, const wf_value *v)
{
    return v->known && !v->producer && !v->is_input && wf_dtype_is_float(v->dtype) &&
           v->variable != WF_VAR_STATISTIC && !is_running(g, v);
}

static wf_status train(wf_unit *u, wf_err *err)
{
    return choose(u,
                  &(patterns){.key = "trainable",
                              .line = u->spec->trainable_line,
                              .list = u->spec->trainable,
                              .n = u->spec->n_trainable,
                              .may = may_train,
                              .among = "constant or variable of floats",
                              .kind = WF_VAR_TRAINABLE,
                              .seed = 1},
                  err);
}

static bool says_unbounded(const wf_conf_table *t)
{
    return t->rows && strcmp(t->rows, "unbounded") == 0;
}

/* The layer and the job have to agree on it. */
static wf_status match_unbounded(wf_unit *u, wf_table *t, wf_err *err)
{
    wf_unbounded *layer = u->unbounded;

    while (layer && strcmp(layer->name, t->name) != 0)
        layer = layer->next;
    t->unbounded = layer;
    if (!layer == !says_unbounded(t->conf))
        return WF_OK;
    return wf_unit_in_file(
        u, t->conf->line,
        layer ? wf_fail(err, WF_USAGE, "add rows: unbounded",
                        "tables: the embedding of \"%.200s\" has input_dim: unbounded", t->name)
              : wf_fail(err, WF_USAGE, "give its embedding input_dim: unbounded",
                        "tables: \"%.200s\" has rows: unbounded, and is of a fixed size", t->name),
        err);
}

/* Nobody but a ps has the rows of an unbounded table. */
static wf_status check_layers(const wf_unit *u, wf_err *err)
{
    for (const wf_unbounded *layer = u->unbounded; layer; layer = layer->next) {
        bool is_table = false;

        for (size_t i = 0; i < u->n_tables && !is_table; i++)
            is_table = u->tables[i].unbounded == layer;
        if (!is_table)
            return wf_unit_in_file(
                u, layer->line,
                wf_fail(err, WF_USAGE, "add it to \"tables\", with rows: unbounded",
                        "\"%.200s\" has input_dim: unbounded, and is in no entry of \"tables\"",
                        layer->name),
                err);
    }
    return WF_OK;
}

static wf_status choose_tables(wf_unit *u, wf_err *err)
{
    u->tables = wf_arena_array(u->arena, u->graph->n_values, sizeof(*u->tables));
    if (!u->tables)
        return wf_fail_nomem(err, u->graph->n_values * sizeof(*u->tables));
    for (size_t i = 0; i < u->spec->n_tables; i++)
        WF_TRY(choose(u,
                      &(patterns){.key = "tables",
                                  .line = u->spec->tables[i].line,
                                  .list = &u->spec->tables[i].match,
                                  .n = 1,
                                  .may = wf_is_variable,
                                  .among = "variable",
                                  .kind = WF_VAR_NOT,
                                  .table = &u->spec->tables[i],
                                  .seed = says_unbounded(&u->spec->tables[i]) ? 3 : 2},
                      err));
    for (size_t i = 0; i < u->n_tables; i++)
        WF_TRY(match_unbounded(u, &u->tables[i], err));
    return check_layers(u, err);
}

/* ---- weights ---- */

typedef struct fit {
    wf_unit *u;
    const wf_conf_weights *w;
    const wf_named_list *file;
    bool *taken; /* [file->n] */
    size_t n_bad;
    char first[512], hint[192]; /* what does not fit, first */
} fit;

/* Keeps a sentence: for the error where all must fit, for a warning otherwise. */
static wf_status note(fit *f, const char *hint, const char *sentence, wf_err *err)
{
    if (f->n_bad++ == 0) {
        snprintf(f->first, sizeof(f->first), "%s", sentence);
        snprintf(f->hint, sizeof(f->hint), "%s", hint);
    }
    return f->w->strict ? WF_OK : wf_unit_warn(f->u, err, "weights: %s", sentence);
}

static const char *name_in_file(const fit *f, const char *variable)
{
    for (size_t i = 0; i < f->w->n_map; i++)
        if (strcmp(f->w->map[i].variable, variable) == 0)
            return f->w->map[i].tensor;
    return variable;
}

static wf_status missing(fit *f, const wf_value *v, const char *name, wf_err *err)
{
    const char **names = calloc(f->file->n + 1, sizeof(*names)), *near = NULL;
    char sentence[512];

    for (size_t i = 0; names && i < f->file->n; i++)
        names[i] = f->file->rows[i].name;
    if (names)
        near = wf_nearest(name, names, f->file->n);
    snprintf(sentence, sizeof(sentence), "%s has no \"%.100s\" for variable \"%.100s\"%s%.100s%s",
             f->w->file, name, v->name, near ? "; did you mean \"" : "", near ? near : "",
             near ? "\"?" : "");
    free(names);
    return note(f, "name it in \"map\", or take what fits with strict: false", sentence, err);
}

static bool is_transposed(const wf_tensor *a, const wf_tensor *b)
{
    return a->rank == 2 && b->rank == 2 && a->dims[0] == b->dims[1] && a->dims[1] == b->dims[0];
}

static wf_status misfit(fit *f, const wf_value *v, const wf_tensor *t, wf_err *err)
{
    char ours[96], theirs[96], sentence[512];

    snprintf(sentence, sizeof(sentence), "variable \"%.100s\" is %s%s, in %s it is %s%s", v->name,
             wf_dtype_name(v->known->dtype),
             wf_dims_str(v->known->rank, v->known->dims, ours, sizeof(ours)), f->w->file,
             wf_dtype_name(t->dtype), wf_dims_str(t->rank, t->dims, theirs, sizeof(theirs)));
    return note(f,
                is_transposed(v->known, t) ? "transpose it in the file: PyTorch keeps [out, in]"
                                           : "take what fits with strict: false",
                sentence, err);
}

static wf_status take(fit *f, wf_value *v, wf_err *err)
{
    const char *name = name_in_file(f, v->name);
    const wf_named *row = wf_named_find(f->file, name);
    const wf_tensor *t = row ? row->tensor : NULL;
    wf_tensor *copy = NULL;

    if (!row)
        return missing(f, v, name, err);
    f->taken[row - f->file->rows] = true;
    if (t->dtype != v->known->dtype || t->rank != v->known->rank ||
        memcmp(t->dims, v->known->dims, t->rank * sizeof(*t->dims)) != 0)
        return misfit(f, v, t, err);
    WF_TRY(wf_tensor_copy(t, &copy, err));
    wf_value_set_known(v, &copy);
    return WF_OK;
}

static wf_status check_map(const fit *f, wf_err *err)
{
    for (size_t i = 0; i < f->w->n_map; i++) {
        const wf_value *v = wf_graph_value(f->u->graph, f->w->map[i].variable);
        const char *near = nearest_variable(f->u, f->w->map[i].variable);

        if (v && wf_is_variable(f->u->graph, v))
            continue;
        return wf_unit_in_file(f->u, f->w->map[i].line,
                               wf_fail(err, WF_USAGE, NULL,
                                       "weights: the model has no variable \"%.200s\""
                                       "%s%s%s",
                                       f->w->map[i].variable, near ? "; did you mean \"" : "",
                                       near ? near : "", near ? "\"?" : ""),
                               err);
    }
    return WF_OK;
}

static wf_status fit_all(fit *f, wf_err *err)
{
    wf_graph *g = f->u->graph;
    char sentence[512];

    WF_TRY(check_map(f, err));
    for (size_t i = 0; i < g->n_values; i++)
        if (wf_is_variable(g, g->values[i]))
            WF_TRY(take(f, g->values[i], err));
    for (size_t i = 0; i < f->file->n; i++) {
        if (f->taken[i] || !f->file->rows[i].is_weight)
            continue;
        snprintf(sentence, sizeof(sentence), "the model has no variable for \"%.200s\" of %s",
                 f->file->rows[i].name, f->w->file);
        WF_TRY(note(f, "name it in \"map\", or take what fits with strict: false", sentence, err));
    }
    if (!f->n_bad || !f->w->strict)
        return WF_OK;
    if (f->n_bad == 1)
        return wf_fail(err, WF_SHAPE, f->hint, "weights: %s", f->first);
    return wf_fail(err, WF_SHAPE, f->hint, "weights: %s (and %zu more do not fit)", f->first,
                   f->n_bad - 1);
}

static wf_status read_weights(wf_unit *u, wf_err *err)
{
    wf_named_list file = {0};
    fit f = {.u = u, .w = u->spec->weights, .file = &file};
    wf_status rc;

    if (!u->spec->read_weights)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "weights from a file cannot be read here");
    rc = u->spec->read_weights(f.w->file, &file, err);
    if (rc == WF_OK) {
        f.taken = calloc(file.n + 1, sizeof(*f.taken));
        rc = f.taken ? fit_all(&f, err) : wf_fail_nomem(err, file.n);
    }
    free(f.taken);
    wf_named_close(&file);
    return rc == WF_OK ? WF_OK : wf_unit_in_file(u, f.w->line, rc, err);
}

wf_status wf_pass_weights(wf_unit *u, wf_err *err)
{
    WF_TRY(train(u, err));
    if (u->spec->weights)
        WF_TRY(read_weights(u, err));
    WF_TRY(freeze(u, err));
    WF_TRY(choose_tables(u, err));
    return wf_check_codecs(u, err);
}
