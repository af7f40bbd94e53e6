/* SPDX-License-Identifier: Apache-2.0 */
/* worker/tables.c */
#include "worker/tables.h"
#include "common/base/row_key.h"
#include "common/base/size.h"
#include "common/onnx/onnx.h"
#include "common/session/job_data_message.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- the ids graph ---- */

/* The table of a variable, which may be a new one. Uses come in the order of the variables. */
static wf_status find_table(wf_tables *t, uint32_t variable, uint32_t *out, wf_err *err)
{
    const Weft__Start *s = t->start;

    if (variable >= s->n_variables || s->variables[variable]->rows_most == 0 ||
        s->variables[variable]->n_dims == 0)
        return wf_fail(err, WF_PROTO, NULL, "a use of variable %u, which is no table", variable);
    for (*out = 0; *out < t->n_tables; ++*out)
        if (t->tables[*out] == variable)
            return WF_OK;
    t->tables[t->n_tables++] = variable;
    return WF_OK;
}

static wf_status take_uses(wf_tables *t, const wf_tables_spec *spec, wf_err *err)
{
    t->uses = calloc(spec->n_uses + 1, sizeof *t->uses);
    t->tables = calloc(spec->n_uses + 1, sizeof *t->tables);
    if (!t->uses || !t->tables)
        return wf_fail_nomem(err, spec->n_uses * sizeof *t->uses);
    for (size_t i = 0; i < spec->n_uses; i++) {
        wf_tables_use *u = &t->uses[t->n_uses++];
        const wf_value *const *outputs = (const wf_value *const *)t->graph->outputs;

        u->name = spec->uses[i]->places;
        u->is_bag = spec->uses[i]->is_bag;
        WF_TRY(find_table(t, spec->uses[i]->variable, &u->table, err));
        while (u->port < t->graph->n_outputs &&
               strcmp(outputs[u->port]->name, spec->uses[i]->ids) != 0)
            u->port++;
        if (u->port == t->graph->n_outputs || outputs[u->port]->dtype != WF_I64)
            return wf_fail(err, WF_PROTO, NULL, "the graph of ids has no \"%.200s\" of int64",
                           spec->uses[i]->ids);
    }
    return WF_OK;
}

wf_status wf_tables_open(wf_tables *t, const wf_tables_spec *spec, wf_err *err)
{
    if (spec->graph->len == 0)
        return WF_OK;
    t->start = spec->start;
    t->data = spec->data;
    t->device = spec->device;
    t->pool = spec->pool;
    WF_TRY(wf_onnx_decode(spec->graph->data, spec->graph->len, NULL, &t->graph, err));
    return take_uses(t, spec, err);
}

void wf_tables_close(wf_tables *t)
{
    wf_plans_close(&t->plans);
    wf_graph_free(&t->graph);
    wf_unique_close(&t->scratch);
    free(t->found);
    free(t->uses);
    free(t->tables);
    *t = (wf_tables){0};
}

static wf_status make_plan(void *arg, uint64_t records, wf_plan **out, wf_err *err)
{
    const wf_tables *t = arg;
    wf_plan_shape *shapes = calloc(t->graph->n_inputs + 1, sizeof *shapes);
    wf_plan_options options = {.device = t->device, .pool = t->pool, .shapes = shapes};
    wf_status rc = shapes ? WF_OK : wf_fail_nomem(err, t->graph->n_inputs * sizeof *shapes);

    for (size_t i = 0; rc == WF_OK && i < t->graph->n_inputs; i++) {
        const wf_value *v = t->graph->inputs[i];
        int32_t field = wf_dataset_find(t->data, v->name);
        wf_plan_shape *shape = &shapes[options.n_shapes++];

        if (field < 0) {
            rc = wf_fail(err, WF_PROTO, NULL,
                         "the graph of ids takes \"%.200s\", which no field is", v->name);
            break;
        }
        shape->name = v->name;
        wf_job_data_dims(v, wf_dataset_field(t->data, (uint32_t)field), records, &shape->rank,
                         shape->dims);
    }
    if (rc == WF_OK)
        rc = wf_plan_new(t->graph, &options, out, err);
    free(shapes);
    return rc;
}

int32_t wf_tables_find(const wf_tables *t, const char *input)
{
    for (uint32_t i = 0; i < t->n_uses; i++)
        if (strcmp(t->uses[i].name, input) == 0)
            return (int32_t)i;
    return -1;
}

wf_status wf_tables_shape(wf_tables *t, uint32_t use, uint64_t records, uint32_t *rank,
                          int64_t dims[], wf_err *err)
{
    const wf_port *port;
    wf_plan *p = NULL;

    WF_TRY(wf_plans_get(&t->plans, records, make_plan, t, &p, err));
    port = wf_plan_output(p, t->uses[use].port);
    *rank = port->rank;
    memcpy(dims, port->dims, port->rank * sizeof *dims);
    return WF_OK;
}

/* ---- what batches name ---- */

void wf_named_rows_clear(wf_named_rows *r, const wf_tables *t)
{
    for (uint32_t i = 0; r->tables && i < t->n_tables; i++)
        r->tables[i].n = r->tables[i].n_places = 0;
    r->n_batches = 0;
}

void wf_named_rows_close(wf_named_rows *r, const wf_tables *t)
{
    for (uint32_t i = 0; r->tables && i < t->n_tables; i++) {
        free(r->tables[i].ids);
        free(r->tables[i].places);
    }
    for (size_t i = 0; i < r->batches_room; i++)
        free(r->batches[i].first);
    free(r->tables);
    free(r->batches);
    *r = (wf_named_rows){0};
}

static wf_status reserve(struct wf_named_table *table, size_t more, wf_err *err)
{
    size_t room = WF_MAX(table->n_places + more, table->room);
    uint64_t *ids;
    int64_t *places;

    if (room == table->room)
        return WF_OK;
    room = WF_MAX(room, 2 * table->room);
    ids = realloc(table->ids, room * sizeof *ids);
    if (ids)
        table->ids = ids;
    places = ids ? realloc(table->places, room * sizeof *places) : NULL;
    if (!places)
        return wf_fail_nomem(err, room * sizeof *places);
    table->places = places;
    table->room = room;
    return WF_OK;
}

static wf_status begin_batch(wf_named_rows *r, const wf_tables *t, wf_err *err)
{
    if (!r->tables)
        r->tables = calloc(t->n_tables + 1, sizeof *r->tables);
    if (!r->tables)
        return wf_fail_nomem(err, t->n_tables * sizeof *r->tables);
    if (r->n_batches == r->batches_room) {
        size_t room = r->batches_room ? 2 * r->batches_room : 1;
        struct wf_named_batch *batches = realloc(r->batches, room * sizeof *batches);

        if (!batches)
            return wf_fail_nomem(err, room * sizeof *batches);
        r->batches = batches;
        for (; r->batches_room < room; r->batches_room++) {
            batches[r->batches_room].first = calloc(t->n_uses + 1, sizeof(size_t));
            if (!batches[r->batches_room].first)
                return wf_fail_nomem(err, t->n_uses * sizeof(size_t));
        }
    }
    return WF_OK;
}

static wf_status bad_id(const wf_tables *t, const wf_tables_use *use, int64_t id, uint64_t record,
                        wf_err *err)
{
    const Weft__Variable *v = t->start->variables[t->tables[use->table]];

    return wf_fail(err, WF_INVALID, "make the table larger (input_dim), or hash the ids into it",
                   "record %" PRIu64 " names row %" PRId64 " of the table \"%s\", which has rows 0 "
                   "to %" PRId64,
                   record, id, v->name, v->dims[0] - 1);
}

static wf_status add_use(wf_named_rows *r, const wf_tables *t, uint32_t use, const wf_plan *p,
                         const wf_batch *batch, wf_err *err)
{
    const wf_tables_use *u = &t->uses[use];
    const int64_t *ids = wf_plan_output_data(p, u->port);
    size_t n = (size_t)wf_plan_output(p, u->port)->elems, each = n / batch->n;
    struct wf_named_table *table = &r->tables[u->table];
    const Weft__Variable *v = t->start->variables[t->tables[u->table]];

    WF_TRY(reserve(table, n, err));
    r->batches[r->n_batches].first[use] = table->n_places;
    for (size_t i = 0; i < n; i++) {
        bool none = u->is_bag && ids[i] < 0;

        table->places[table->n_places++] = none ? -1 : 0;
        if (none)
            continue;
        if (!v->unbounded && (ids[i] < 0 || ids[i] >= v->dims[0]))
            return bad_id(t, u, ids[i], batch->at[WF_MIN(i / WF_MAX(each, 1), batch->n - 1)], err);
        table->ids[table->n++] = v->unbounded ? wf_row_key(ids[i]) : (uint64_t)ids[i];
    }
    return WF_OK;
}

wf_status wf_named_rows_add(wf_named_rows *r, wf_tables *t, const wf_batch *batch, wf_err *err)
{
    wf_plan *p = NULL;

    WF_TRY(begin_batch(r, t, err));
    WF_TRY(wf_plans_get(&t->plans, batch->n, make_plan, t, &p, err));
    for (uint32_t i = 0; i < wf_plan_n_inputs(p); i++)
        wf_plan_bind_input(p, i,
                           batch->fields[wf_dataset_find(t->data, wf_plan_input(p, i)->name)].data);
    WF_TRY(wf_plan_run(p, &(wf_step_key){0}, NULL, NULL, err));
    for (uint32_t i = 0; i < t->n_uses; i++)
        WF_TRY(add_use(r, t, i, p, batch, err));
    r->n_batches++;
    return WF_OK;
}

/* Whether two tables have the same ids in the same order, and none at the same places. */
static bool are_alike(const struct wf_named_table *a, const struct wf_named_table *b)
{
    if (a->n != b->n || a->n_places != b->n_places)
        return false;
    if (a->n < a->n_places && memcmp(a->places, b->places, a->n_places * sizeof *a->places) != 0)
        return false;
    return a->n == 0 || memcmp(a->ids, b->ids, a->n * sizeof *a->ids) == 0;
}

/* The first table, up to number i, that is like table i. */
static uint32_t first_alike(const wf_named_rows *r, uint32_t i)
{
    uint32_t k = 0;

    while (k < i && !are_alike(&r->tables[k], &r->tables[i]))
        k++;
    return k;
}

/* What was found for another table. */
static void copy_found(struct wf_named_table *to, const struct wf_named_table *from)
{
    to->n = from->n;
    if (to->n == 0) /* no place names a row */
        return;
    memcpy(to->ids, from->ids, from->n * sizeof *to->ids);
    memcpy(to->places, from->places, from->n_places * sizeof *to->places);
}

static wf_status find_distinct(wf_tables *t, struct wf_named_table *table, wf_err *err)
{
    bool all = table->n == table->n_places; /* each place has an id */
    size_t n = table->n, at = 0;

    if (!all && n > t->found_room) {
        free(t->found);
        t->found_room = 0;
        t->found = malloc(table->room * sizeof *t->found);
        if (!t->found)
            return wf_fail_nomem(err, table->room * sizeof *t->found);
        t->found_room = table->room;
    }
    WF_TRY(wf_unique_find(&t->scratch, table->ids, n, table->ids, &table->n,
                          all ? table->places : t->found, err));
    for (size_t i = 0; !all && i < table->n_places; i++)
        if (table->places[i] == 0)
            table->places[i] = t->found[at++];
    return WF_OK;
}

wf_status wf_named_rows_end(wf_named_rows *r, wf_tables *t, wf_err *err)
{
    for (uint32_t i = 0; r->tables && i < t->n_tables; i++)
        r->tables[i].alike = first_alike(r, i);
    for (uint32_t i = 0; r->tables && i < t->n_tables; i++) {
        struct wf_named_table *table = &r->tables[i];

        if (table->alike < i)
            copy_found(table, &r->tables[table->alike]);
        else
            WF_TRY(find_distinct(t, table, err));
    }
    return WF_OK;
}

wf_status wf_named_rows_tell(const wf_named_rows *r, const wf_tables *t, wf_exchange *x, int set,
                             wf_err *err)
{
    for (uint32_t i = 0; i < t->n_tables; i++)
        WF_TRY(wf_exchange_name_rows(x, set, t->tables[i], r->tables ? r->tables[i].ids : NULL,
                                     r->tables ? r->tables[i].n : 0, err));
    return WF_OK;
}

const int64_t *wf_named_rows_places(const wf_named_rows *r, const wf_tables *t, uint32_t use,
                                    size_t batch)
{
    return r->tables[t->uses[use].table].places + r->batches[batch].first[use];
}
