/* SPDX-License-Identifier: Apache-2.0 */
/* ps/table.c - a slice of a table: whole rows of a variable, which are pulled and pushed by their
 * ids. Only the rows that a push names are updated, values and slots: the lazy form of each rule.
 *
 * The state is a dense slice's, so that checkpoints and moves are the same; its memory is what the
 * rows and their slots need. Rows are read in no order, so each is fetched while those before it
 * are worked on.
 */
#include "common/base/size.h"
#include "ps/dense.h"

#include <inttypes.h>
#include <string.h>

enum {
    GRAIN = 16 << 10, /* elements that one thread takes at a time */
    AHEAD = 8,        /* rows that are fetched before they are worked on */
    LINE = 64         /* bytes of memory that are fetched at once */
};

static const wf_dense *dense(const wf_slice *s)
{
    return (const wf_dense *)s;
}

static uint64_t first_row(const wf_slice *s)
{
    return s->offset / s->row;
}

static wf_status table_init(wf_slice *s, const wf_opt *opt, wf_err *err)
{
    if (s->row == 0 || s->offset % s->row || s->count % s->row || !s->trainable)
        return wf_fail(err, WF_INVALID, NULL, "slice %u of a table is not made of rows to train",
                       s->id);
    if (opt->rule->whole)
        return wf_fail(err, WF_INVALID, "choose another optimizer, or a dense variable",
                       "%s takes norms over a whole variable, and slice %u is of a table",
                       opt->rule->name, s->id);
    return wf_dense_init(s, opt, err);
}

/* Distinct ids of rows that are here, in rising order: so that threads share no row. */
static wf_status check_ids(const wf_slice *s, const wf_rows *rows, wf_err *err)
{
    uint64_t first = first_row(s), end = first + s->count / s->row;

    for (uint64_t i = 0; i < rows->n; i++) {
        uint64_t id = wf_row_id(rows, i);

        if (id < first || id >= end)
            return wf_fail(err, WF_SHAPE, NULL,
                           "row %" PRIu64 " is not in slice %u, which has rows %" PRIu64
                           " to %" PRIu64,
                           id, s->id, first, end - 1);
        if (i > 0 && id <= wf_row_id(rows, i - 1))
            return wf_fail(err, WF_PROTO, NULL, "rows of slice %u are not in rising order", s->id);
    }
    return WF_OK;
}

static wf_status table_check(const wf_slice *s, const wf_slice_part *p, wf_err *err)
{
    if (p->rows.n == 0)
        return wf_fail(err, WF_PROTO, "push the rows of a table by their ids",
                       "slice %u is of a table, and the part names no rows", s->id);
    if (p->n / p->rows.n != s->row || p->n % p->rows.n)
        return wf_fail(err, WF_SHAPE, NULL,
                       "a row of slice %u has %" PRIu64 " elements, and the part %" PRIu64
                       " for %" PRIu64 " rows",
                       s->id, s->row, p->n, p->rows.n);
    return check_ids(s, &p->rows, err);
}

/* V2: values that a fork still holds are copied whole, once; no spare is kept, which would be as
 * large as the table. */
static wf_status table_apply_begin(wf_slice_update *u, wf_err *err)
{
    wf_dense *d = (wf_dense *)u->slice;

    WF_TRY(wf_dense_apply_begin(u, err));
    if (u->own)
        memcpy(d->weights->data, ((const wf_buf *)u->own)->data, d->weights->bytes);
    wf_dense_apply_end(u);
    for (int i = 0; i < WF_DENSE_SPARES; i++)
        wf_buf_unref(&d->spares[i]);
    u->units = u->part.rows.n;
    u->grain = WF_MAX((uint64_t)GRAIN / u->slice->row, (uint64_t)1);
    return WF_OK;
}

static void fetch(const float *row, uint64_t n)
{
    for (uint64_t k = 0; k < n; k += LINE / sizeof *row)
        __builtin_prefetch(row + k);
}

/* Where a row begins in each array. */
static uint64_t place_of(const wf_slice *s, const wf_rows *rows, uint64_t i)
{
    return (wf_row_id(rows, i) - first_row(s)) * s->row;
}

static void table_apply_range(const wf_slice_update *u, const wf_opt *opt, uint64_t begin,
                              uint64_t end)
{
    const wf_slice *s = u->slice;
    const wf_dense *d = dense(s);
    float *w = d->weights->data, *slots[WF_MAX_SLOTS] = {0};

    for (uint64_t i = begin; i < end; i++) {
        uint64_t at = place_of(s, &u->part.rows, i);

        if (i + AHEAD < end) {
            uint64_t later = place_of(s, &u->part.rows, i + AHEAD);

            fetch(w + later, s->row);
            for (uint32_t k = 0; k < d->n_slots; k++)
                fetch(d->slots[k] + later, s->row);
        }
        for (uint32_t k = 0; k < d->n_slots; k++)
            slots[k] = d->slots[k] + at;
        wf_opt_apply(opt, s->updates, s->row, w + at, u->part.values + i * s->row, slots);
    }
}

static void table_answer_rows(const wf_slice *s, const wf_rows *rows, float out[])
{
    const float *w = dense(s)->weights->data;
    size_t bytes = s->row * sizeof *w;

    for (uint64_t i = 0; i < rows->n; i++) {
        if (i + AHEAD < rows->n)
            fetch(w + place_of(s, rows, i + AHEAD), s->row);
        memcpy(out + i * s->row, w + place_of(s, rows, i), bytes);
    }
}

const wf_slice_ops wf_slice_table = {
    .name = "table",
    .size = sizeof(wf_dense),
    .init = table_init,
    .close = wf_dense_close,
    .check = table_check,
    .check_rows = check_ids,
    .apply_begin = table_apply_begin,
    .apply_range = table_apply_range,
    .apply_end = wf_dense_apply_end,
    .answer_rows = table_answer_rows,
    .fork = wf_dense_fork,
    .save = wf_dense_save,
    .load = wf_dense_load,
    .digest = wf_dense_digest,
};
