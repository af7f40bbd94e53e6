/* SPDX-License-Identifier: Apache-2.0 */
/* worker/tables.h - which rows of tables a batch names: the ids graph of a side computes ids from
 * the records, and each row is pulled once, however many ids name it.
 *
 * Belongs to one thread at a time.
 */
#ifndef WF_WORKER_TABLES_H
#define WF_WORKER_TABLES_H

#include "common/base/status.h"
#include "common/base/unique.h"
#include "common/data/reader.h"
#include "common/session/plans.h"
#include "common/wire/control.pb-c.h"
#include "worker/exchange.h"
#include <stdbool.h>
#include <stdint.h>

/* One Gather or EmbeddingBag of a table. */
typedef struct wf_tables_use {
    uint32_t table;   /* in wf_tables.tables */
    uint32_t port;    /* output of the ids graph */
    const char *name; /* of the input that takes the places */
    bool is_bag;      /* an id below 0 names no row, and its place is -1 */
} wf_tables_use;

typedef struct wf_tables {
    const Weft__Start *start;
    const wf_dataset *data;
    wf_graph *graph; /* NULL: the side has no tables */
    wf_plans plans;
    const struct wf_device *device;
    wf_pool *pool;
    uint32_t *tables; /* [n_tables]: variables */
    uint32_t n_tables, n_uses;
    wf_tables_use *uses; /* [n_uses]: those of a table follow each other */
    wf_unique scratch;
    int64_t *found; /* [found_room]: places of the ids of bags, side by side */
    size_t found_room;
} wf_tables;

/* What batches name. {0} is empty; its memory is used again. */
typedef struct wf_named_rows {
    struct wf_named_table {
        uint64_t *ids; /* [n]: distinct, rising; while batches are added: as they come; of an
                          unbounded table keys (common/base/row_key.h) */
        size_t n, room;
        int64_t *places; /* [n_places]: of each id, in the order of adding; while batches are added:
                            -1 where a bag has no id, else 0 */
        size_t n_places;
        uint32_t alike; /* the first table with the same ids: two embeddings of one input are two
                           tables, whose ids are sorted once */
    } * tables;         /* [n_tables] */
    struct wf_named_batch {
        size_t *first; /* [n_uses]: of its places, in those of the table */
    } * batches;
    size_t n_batches, batches_room;
} wf_named_rows;

typedef struct wf_tables_spec {
    const Weft__Start *start;
    const ProtobufCBinaryData *graph;
    Weft__TableUse *const *uses; /* [n_uses] */
    size_t n_uses;
    const wf_dataset *data;
    const struct wf_device *device;
    wf_pool *pool;
} wf_tables_spec;

/* Opens the ids graph; an empty one has no tables. What the spec points to is borrowed. Close it
 * after an error as well. Errors: WF_PROTO for uses that cannot be, those of the graph. */
WF_MUST_USE wf_status wf_tables_open(wf_tables *t, const wf_tables_spec *spec, wf_err *err);
void wf_tables_close(wf_tables *t);
static inline bool wf_tables_any(const wf_tables *t)
{
    return t->graph != NULL;
}
/* The use whose places an input takes; -1: another input. And the shape of these, for so many
 * records: dims has room for WF_MAX_RANK. Errors: those of a plan. */
int32_t wf_tables_find(const wf_tables *t, const char *input);
WF_MUST_USE wf_status wf_tables_shape(wf_tables *t, uint32_t use, uint64_t records, uint32_t *rank,
                                      int64_t dims[], wf_err *err);

/* Forgets all batches. */
void wf_named_rows_clear(wf_named_rows *r, const wf_tables *t);
void wf_named_rows_close(wf_named_rows *r, const wf_tables *t);
/* Adds the ids of a batch. Errors: WF_INVALID for an id that is no row of its table, naming table
 * and record; WF_NOMEM. */
WF_MUST_USE wf_status wf_named_rows_add(wf_named_rows *r, wf_tables *t, const wf_batch *batch,
                                        wf_err *err);
/* All are added: finds the distinct ones, and tells the exchange. Errors: WF_NOMEM, and those of
 * wf_exchange_name_rows. */
WF_MUST_USE wf_status wf_named_rows_end(wf_named_rows *r, wf_tables *t, wf_err *err);
WF_MUST_USE wf_status wf_named_rows_tell(const wf_named_rows *r, const wf_tables *t, wf_exchange *x,
                                         int set, wf_err *err);
/* The places of a use in the batch that was added as number `batch`. */
const int64_t *wf_named_rows_places(const wf_named_rows *r, const wf_tables *t, uint32_t use,
                                    size_t batch);

#endif
