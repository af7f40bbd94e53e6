/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/whole_tables.c - unbounded tables of a graph that has its variables in itself, as
 * it is evaluated and exported: the rows that the spec gives (a checkpoint's) are a variable, their
 * ids a constant, and TableRows gives a batch its rows. Each Gather, and each EmbeddingBag, reads
 * these by the places of its ids, as tables.c has it for a worker.
 */
#include "common/compile/pass.h"
#include "common/graph/emit.h"
#include "common/graph/table_rows.h"

#include <stdlib.h>
#include <string.h>

/* The rows that the spec gives, [n + 1, width], and their ids [n]. */
typedef struct rows {
    wf_tensor *values, *ids;
} rows;

static const wf_tensor *given(const wf_unit *u, const char *name, const char *suffix)
{
    size_t n = strlen(name);

    for (size_t i = 0; u->spec->rows && i < u->spec->rows->n; i++) {
        const wf_named *row = &u->spec->rows->rows[i];

        if (strncmp(row->name, name, n) == 0 && strcmp(row->name + n, suffix) == 0)
            return row->tensor;
    }
    return NULL;
}

static wf_status check_given(const wf_table *t, const wf_tensor *values, const wf_tensor *ids,
                             wf_err *err)
{
    int64_t width = wf_dim(t->value->known, 1);
    char a[96], b[96];

    if (ids && values->dtype == WF_F32 && values->rank == 2 && values->dims[1] == width &&
        ids->dtype == WF_I64 && ids->rank == 1 && values->dims[0] - 1 == ids->dims[0])
        return WF_OK;
    return wf_fail(err, WF_SHAPE, "give the weights of this model",
                   "the rows of \"%.200s\" are %s and their ids %s, which must be [rows + 1, %lld] "
                   "and [rows]",
                   t->name, wf_dims_str(values->rank, values->dims, a, sizeof(a)),
                   ids ? wf_dims_str(ids->rank, ids->dims, b, sizeof(b)) : "missing",
                   (long long)width);
}

static wf_first_rows first_of(const wf_unit *u, const wf_table *t)
{
    return (wf_first_rows){.numbers = t->unbounded->first,
                           .seed = u->spec->seed,
                           .stream = wf_initial_stream(t->name),
                           .dtype = wf_table_dtype(t)};
}

/* A table that is not given has no rows yet: what is there is the one behind them. */
static wf_status rows_of(const wf_unit *u, const wf_table *t, rows *r, wf_err *err)
{
    const wf_tensor *values = given(u, t->name, ""), *ids = given(u, t->name, WF_ROW_IDS);
    const int64_t none[] = {0}, one[] = {1, wf_dim(t->value->known, 1)};
    const wf_first_rows first = first_of(u, t);

    if (values) {
        WF_TRY(check_given(t, values, ids, err));
        WF_TRY(wf_tensor_share(values, &r->values, err));
        return wf_tensor_share(ids, &r->ids, err);
    }
    WF_TRY(wf_tensor_new(WF_F32, 2, one, &r->values, err));
    wf_mean_row(&first, (uint64_t)one[1], wf_f32_mut(r->values));
    return wf_tensor_new(WF_I64, 1, none, &r->ids, err);
}

/* The variable of the buckets stays aside, for nodes that nobody needs. */
static wf_status put_rows(wf_unit *u, wf_table *t, rows *r, wf_value **ids, wf_err *err)
{
    wf_graph *g = u->graph;
    wf_value *buckets = t->value;
    char *aside = wf_arena_printf(g->arena, "%s/buckets", t->name);
    char *name = wf_arena_printf(g->arena, "%s%s", t->name, WF_ROW_IDS);

    if (!aside || !name)
        return wf_fail_nomem(err, strlen(t->name));
    WF_TRY(wf_graph_rename_value(g, buckets, aside, err));
    buckets->variable = WF_VAR_NOT;
    WF_TRY(wf_graph_add_constant(g, name, &r->ids, ids, err));
    return wf_graph_add_variable(g, t->name, WF_VAR_TRAINABLE, &r->values, &t->value, err);
}

static wf_status take_rows(wf_unit *u, const wf_table *t, wf_value *row_ids, wf_node *gather,
                           wf_err *err)
{
    const wf_first_rows first = first_of(u, t);
    wf_emit e = wf_emit_begin(u->graph, t->name, err);
    wf_value *in[3] = {t->value, row_ids, wf_emit_cast(&e, gather->in[1], WF_I64)}, *out[2];

    wf_emit_table_rows(&e, in, &first, wf_node_is(gather, WF_DOMAIN_WEFT, "EmbeddingBag"), out);
    WF_TRY(wf_emit_end(&e));
    wf_node_set_in(gather, 0, out[WF_TABLE_ROWS_ROWS]);
    wf_node_set_in(gather, 1, out[WF_TABLE_ROWS_PLACES]);
    return WF_OK;
}

/* Table t, whose Gathers these are. */
static wf_status put_table(wf_unit *u, wf_table *t, wf_node *const gathers[], size_t n, wf_err *err)
{
    wf_value *ids = NULL;
    rows r = {0};
    wf_status rc;

    rc = rows_of(u, t, &r, err);
    if (rc == WF_OK)
        rc = put_rows(u, t, &r, &ids, err);
    wf_tensor_free(&r.values);
    wf_tensor_free(&r.ids);
    for (size_t i = 0; rc == WF_OK && i < n; i++)
        rc = take_rows(u, t, ids, gathers[i], err);
    return rc;
}

/* All Gathers are found before the first table is put in place: `live` knows the nodes of now.
 * n_of [n_tables]. */
static wf_status put_all(wf_unit *u, bool live[], wf_node *gathers[], size_t n_of[], wf_err *err)
{
    size_t n = 0;

    WF_TRY(wf_mark_live(u, live, err));
    for (size_t i = 0; i < u->n_tables; n += n_of[i++])
        if (u->tables[i].unbounded) /* no node is a Gather of two tables: the lists fit */
            WF_TRY(wf_table_gathers(u, &u->tables[i], live, gathers + n, &n_of[i], err));
    for (size_t i = 0; i < u->n_tables; gathers += n_of[i++])
        if (n_of[i] > 0)
            WF_TRY(put_table(u, &u->tables[i], gathers, n_of[i], err));
    return wf_graph_sort(u->graph, err); /* TableRows stand behind what reads them */
}

wf_status wf_put_whole_tables(wf_unit *u, wf_err *err)
{
    wf_compile_mode mode = u->spec->mode;
    wf_node **gathers;
    size_t n, *n_of;
    bool *live;
    wf_status rc;

    if (mode != WF_COMPILE_EVAL && mode != WF_COMPILE_INFER)
        return wf_fail(err, WF_UNSUPPORTED, "train it with parameter servers",
                       "\"%.200s\" is an unbounded table, and a graph without parameter servers "
                       "cannot train it",
                       u->unbounded->name);
    WF_TRY(wf_graph_sort(u->graph, err));
    n = u->graph->n_nodes;
    gathers = calloc(n + 1, sizeof(*gathers));
    n_of = calloc(u->n_tables + 1, sizeof(*n_of));
    live = calloc(n + 1, sizeof(*live));
    rc = gathers && n_of && live ? put_all(u, live, gathers, n_of, err)
                                 : wf_fail_nomem(err, n * sizeof(*gathers));
    free(gathers);
    free(n_of);
    free(live);
    return rc;
}
