/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/tables.c - of a table a step has the rows that its batch names, and no others.
 *
 * The graph is cut at the ids of each Gather, and of each EmbeddingBag. What computes them from the
 * feeds becomes a second graph, the ids graph: a worker runs it first, lists each id once, pulls
 * these rows, and binds them where the variable was; a new input says for each id its place in the
 * list. To train, the variable in the main graph has rows_most rows, room for the largest batch
 * whose ids all differ, and so has its gradient: a Gather's gradient adds up where a place repeats,
 * as it would where an id does. To evaluate, it has as many as before: several batches may share
 * what is bound there. An unbounded table, which was no variable of all rows before, then has room
 * for these batches.
 *
 * Gathers that share their ids share the input. The ids graph is compiled by the passes that other
 * graphs take, as far as they say something to integers.
 */
#include "common/base/row_key.h"
#include "common/base/size.h"
#include "common/compile/pass.h"
#include "common/graph/emit.h"
#include "common/tensor/stochastic.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static wf_status check_job(const wf_unit *u, wf_err *err)
{
    const wf_compile_spec *s = u->spec;
    wf_status rc = WF_OK;

    if (!wf_strategy_has_tables(s->strategy))
        rc = wf_fail(err, WF_UNSUPPORTED,
                     u->unbounded ? "train an unbounded table with parameter servers"
                                  : "leave out \"tables\", or take parameter servers",
                     "strategy %s has all rows of all variables in the worker, and no tables",
                     s->strategy->name);
    else if (s->whole_variables)
        rc = wf_fail(err, WF_UNSUPPORTED, "take adamw, which goes by elements",
                     "this optimizer takes norms over whole variables, and of a table a step has "
                     "a few rows");
    else if (s->accumulates)
        rc = wf_fail(err, WF_UNSUPPORTED, "take a larger batch in its place",
                     "gradient_accumulation_steps adds up the gradients of batches, and with "
                     "tables each batch has other rows");
    return wf_unit_in_file(u, s->tables_line, rc, err);
}

/* ---- what is live ---- */

wf_status wf_mark_live(wf_unit *u, bool live[], wf_err *err)
{
    bool *wanted = calloc(u->graph->n_values + 1, sizeof(*wanted));

    if (!wanted)
        return wf_fail_nomem(err, u->graph->n_values);
    for (size_t i = 0; i < u->n_statistics; i++)
        wanted[u->statistics[i].batch->index] = true;
    wf_mark_needed(u->graph, live, wanted);
    free(wanted);
    return WF_OK;
}

/* ---- the ids graph ---- */

/* A name in g that begins so and is free. */
static const char *free_name(const wf_graph *g, wf_arena *a, const char *variable)
{
    const char *name = wf_arena_printf(a, "%s/ids", variable);

    for (unsigned i = 1; name && wf_graph_value(g, name); i++)
        name = wf_arena_printf(a, "%s/ids_%u", variable, i);
    return name;
}

/* An output of the ids graph that is the use's alone, whoever else reads these ids. */
static wf_status add_ids(wf_unit *u, wf_table_use *use, wf_err *err)
{
    wf_graph *g = u->c->ids_graph;
    wf_emit e = wf_emit_begin(g, use->table->name, err);
    wf_value *from = wf_graph_value(g, use->cut->name), *to;
    const char *name = free_name(g, u->arena, use->table->name);

    if (!name)
        return wf_fail_nomem(err, strlen(use->table->name));
    to = from->dtype == WF_I64 ? wf_emit_identity(&e, from) : wf_emit_cast(&e, from, WF_I64);
    WF_TRY(wf_emit_end(&e));
    WF_TRY(wf_graph_rename_value(g, to, name, err));
    use->ids = name;
    return wf_graph_add_output(g, to, err);
}

/* From the graph as it is before it is cut. */
static wf_status begin_ids(wf_unit *u, wf_err *err)
{
    WF_TRY(wf_graph_copy(u->graph, &u->c->ids_graph, err));
    u->c->ids_graph->n_outputs = 0;
    for (size_t i = 0; i < u->n_uses; i++)
        WF_TRY(add_ids(u, &u->uses[i], err));
    return WF_OK;
}

static wf_status finish_ids(wf_unit *u, wf_err *err)
{
    wf_graph *g = u->c->ids_graph;
    wf_unit own = {.spec = u->spec,
                   .c = u->c,
                   .graph = g,
                   .arena = u->arena,
                   .warnings_room = u->warnings_room};

    WF_TRY(wf_pass_prune(&own, err));
    for (size_t i = 0; i < g->n_nodes; i++)
        g->nodes[i]->device = NULL; /* that of its layer is for numbers in bulk */
    WF_TRY(wf_pass_infer(&own, err));
    WF_TRY(wf_pass_fold(&own, err));
    WF_TRY(wf_pass_simplify(&own, err));
    WF_TRY(wf_pass_cse(&own, err));
    WF_TRY(wf_pass_partition(&own, err));
    WF_TRY(wf_pass_schedule(&own, err));
    u->warnings_room = own.warnings_room;
    return WF_OK;
}

/* ---- the cut ---- */

/* The use of t by the ids of that node, or a new one; there is room. */
static wf_table_use *use_of(wf_unit *u, wf_table *t, const wf_node *gather)
{
    bool is_bag = wf_node_is(gather, WF_DOMAIN_WEFT, "EmbeddingBag");
    const wf_value *ids = gather->in[1];

    for (size_t i = 0; i < u->n_uses; i++)
        if (u->uses[i].table == t && u->uses[i].cut == ids && u->uses[i].is_bag == is_bag)
            return &u->uses[i];
    u->uses[u->n_uses] = (wf_table_use){.table = t, .cut = ids, .is_bag = is_bag};
    t->rows_most += (uint64_t)wf_most_elems(ids);
    return &u->uses[u->n_uses++];
}

/* Takes the places of the ids as an input. */
static wf_status add_places(wf_unit *u, wf_table_use *use, wf_err *err)
{
    const char *hint = wf_arena_printf(u->arena, "%s/places", use->table->name);
    wf_value *places;

    if (!hint)
        return wf_fail_nomem(err, strlen(use->table->name));
    WF_TRY(wf_graph_add_value_like(u->graph, hint, &places, err));
    places->dtype = WF_I64;
    places->rank = use->cut->rank;
    memcpy(places->axes, use->cut->axes, sizeof(places->axes));
    use->places = places;
    return wf_graph_add_input(u->graph, places, err);
}

/* An int8 row is rounded when all of it is known, and a ps has room for so much. A limit in bytes
 * is for all buckets together, each of which has to hold a row: its ps knows what more than values
 * that takes, and looks again. */
static wf_status check_row(const wf_unit *u, const wf_table *t, const wf_tensor *whole, wf_err *err)
{
    uint64_t each = t->conf->max_bytes / WF_ROW_BUCKETS;
    int64_t row = 1;

    for (uint32_t i = 1; i < whole->rank; i++)
        row *= whole->dims[i];
    if (t->conf->max_bytes && each / wf_dtype_size(wf_table_dtype(t)) < (uint64_t)row)
        return wf_unit_in_file(
            u, t->conf->line,
            wf_fail(err, WF_USAGE, "raise max_bytes",
                    "tables: with max_bytes: %" PRIu64 " each of the %d slices of \"%.200s\" has "
                    "%" PRIu64 " bytes, and a row of %" PRId64 " elements needs more",
                    t->conf->max_bytes, WF_ROW_BUCKETS, t->name, each, row),
            err);
    if (wf_table_dtype(t) != WF_I8 || row <= WF_INT8_ROW_MOST)
        return WF_OK;
    return wf_unit_in_file(u, t->conf->line,
                           wf_fail(err, WF_UNSUPPORTED, "hold it in bfloat16",
                                   "tables: a row of \"%.200s\" has %" PRId64
                                   " elements, and with dtype: int8 it has %d at most",
                                   t->name, row, WF_INT8_ROW_MOST),
                           err);
}

/* The variable of all rows stays aside, for nodes that nobody needs; another one has its name. */
static wf_status set_rows(wf_unit *u, wf_table *t, wf_err *err)
{
    wf_graph *g = u->graph;
    wf_value *whole = t->value;
    char *aside = wf_arena_printf(g->arena, "%s/whole", t->name);
    int64_t dims[WF_MAX_RANK];
    wf_tensor *rows = NULL;
    wf_status rc;

    if (!aside)
        return wf_fail_nomem(err, strlen(t->name));
    WF_TRY(check_row(u, t, whole->known, err));
    memcpy(dims, whole->known->dims, sizeof(dims));
    if (!t->unbounded)
        t->rows_most = WF_MIN(t->rows_most, (uint64_t)dims[0]);
    if (u->spec->mode == WF_COMPILE_TRAIN)
        dims[0] = (int64_t)t->rows_most;
    else if (t->unbounded &&
             !wf_mul_i64((int64_t)t->rows_most, WF_MAX(u->spec->unit_batches, (int64_t)1), dims))
        return wf_fail_nomem(err, SIZE_MAX);
    WF_TRY(wf_unit_share(u, whole->known, &t->initial, err));
    WF_TRY(wf_graph_rename_value(g, whole, aside, err));
    whole->variable = WF_VAR_NOT;
    WF_TRY(wf_tensor_new_blank(WF_F32, whole->known->rank, dims, &rows, err));
    rc = wf_graph_add_variable(g, t->name, WF_VAR_TRAINABLE, &rows, &t->value, err);
    wf_tensor_free(&rows);
    return rc;
}

/* Table t, whose Gathers these are. */
static wf_status cut_one(wf_unit *u, wf_table *t, wf_node *const gathers[], size_t n, wf_err *err)
{
    WF_TRY(set_rows(u, t, err));
    for (size_t i = 0; i < n; i++) {
        wf_table_use *use = use_of(u, t, gathers[i]);

        if (!use->places)
            WF_TRY(add_places(u, use, err));
        wf_node_set_in(gathers[i], 0, t->value);
        wf_node_set_in(gathers[i], 1, (wf_value *)use->places);
    }
    return WF_OK;
}

/* Gathers of all tables, one table's after the other's; ends[i]: where those of table i end. */
typedef struct cuts {
    wf_node **gathers;
    size_t *ends;
    bool *live;
} cuts;

static wf_status find_uses(wf_unit *u, cuts *c, wf_err *err)
{
    size_t n = 0;

    WF_TRY(wf_mark_live(u, c->live, err));
    for (size_t i = 0; i < u->n_tables; i++) {
        size_t own = 0;

        /* No node is a Gather of two tables: the lists fit one after the other. */
        WF_TRY(wf_table_gathers(u, &u->tables[i], c->live, c->gathers + n, &own, err));
        for (size_t k = 0; k < own; k++)
            use_of(u, &u->tables[i], c->gathers[n + k]);
        c->ends[i] = n += own;
    }
    return WF_OK;
}

static wf_status cut_all(wf_unit *u, cuts *c, wf_err *err)
{
    WF_TRY(find_uses(u, c, err));
    if (!u->n_uses)
        return WF_OK;
    WF_TRY(begin_ids(u, err));
    for (size_t i = 0, from = 0; i < u->n_tables; from = c->ends[i++])
        if (c->ends[i] > from)
            WF_TRY(cut_one(u, &u->tables[i], c->gathers + from, c->ends[i] - from, err));
    return finish_ids(u, err);
}

wf_status wf_pass_tables(wf_unit *u, wf_err *err)
{
    size_t n = u->graph->n_nodes;
    cuts c = {0};
    wf_status rc;

    if (u->unbounded && !u->spec->strategy)
        return wf_put_whole_tables(u, err);
    if (!u->n_tables || !u->spec->strategy)
        return WF_OK;
    WF_TRY(check_job(u, err));
    WF_TRY(wf_graph_sort(u->graph, err));
    u->uses = wf_arena_array(u->arena, n, sizeof(*u->uses));
    c.gathers = calloc(n + 1, sizeof(*c.gathers));
    c.ends = calloc(u->n_tables, sizeof(*c.ends));
    c.live = calloc(n + 1, sizeof(*c.live));
    rc = u->uses && c.gathers && c.ends && c.live ? cut_all(u, &c, err)
                                                  : wf_fail_nomem(err, n * sizeof(*u->uses));
    free(c.gathers);
    free(c.ends);
    free(c.live);
    return rc;
}
