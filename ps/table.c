/* SPDX-License-Identifier: Apache-2.0 */
/* ps/table.c - a slice of a table: whole rows of a variable, which are pulled and pushed by their
 * ids. Only the rows that a push names are updated, values and slots: the lazy form of each rule.
 *
 * The state is a dense slice's, so that checkpoints and moves are the same; its memory is what the
 * rows and their slots need. Rows are read in no order, so each is fetched while those before it
 * are worked on.
 */
#include "ps/table.h"
#include "common/base/cc.h"
#include "common/base/size.h"

#include <inttypes.h>
#include <string.h>

enum {
    GRAIN = 16 << 10, /* elements that one thread takes at a time */
    BLOCK = 1 << 8, /* elements that are updated at once: few, so that rows come while these are */
    AHEAD = 16,     /* rows that are fetched before they are worked on */
    LINE = 64 / sizeof(float) /* elements that are fetched at once */
};

static wf_status table_init(wf_slice *s, const wf_opt *opt, wf_err *err)
{
    if (s->row == 0 || s->offset % s->row || s->count % s->row || !s->trainable)
        return wf_fail(err, WF_INVALID, NULL, "slice %u of a table is not made of rows to train",
                       s->id);
    if ((unsigned)s->policy.first.kind >= WF_N_DISTRIBUTIONS)
        return wf_fail(err, WF_INVALID, NULL, "rows of slice %u begin by no known distribution",
                       s->id);
    if (opt->rule->whole)
        return wf_fail(err, WF_INVALID, "choose another optimizer, or a dense variable",
                       "%s takes norms over a whole variable, and slice %u is of a table",
                       opt->rule->name, s->id);
    if (!wf_row_values_known(wf_slice_dtype(s)))
        return wf_fail(err, WF_INVALID, NULL, "rows of slice %u are of no type that a ps holds",
                       s->id);
    if (wf_slice_dtype(s) == WF_I8 && s->row > WF_INT8_ROW_MOST)
        return wf_fail(err, WF_INVALID, "hold them in bfloat16",
                       "a row of slice %u has %" PRIu64 " elements, and one of int8 %d at most",
                       s->id, s->row, WF_INT8_ROW_MOST);
    if (s->count > SIZE_MAX / (2 * sizeof(float)))
        return wf_fail(err, WF_INVALID, NULL, "slice %u is too large", s->id);
    return wf_dense_init_sized(s, opt, wf_table_values_room(s), err);
}

static wf_status bad_ids(const wf_slice *s, const wf_rows *rows, uint64_t first, uint64_t end,
                         wf_err *err)
{
    for (uint64_t i = 0; i < rows->n; i++)
        if (wf_row_id(rows, i) < first || wf_row_id(rows, i) >= end)
            return wf_fail(err, WF_SHAPE, NULL,
                           "row %" PRIu64 " is not in slice %u, which has rows %" PRIu64
                           " to %" PRIu64,
                           wf_row_id(rows, i), s->id, first, end - 1);
    return wf_fail(err, WF_PROTO, NULL, "rows of slice %u are not in rising order", s->id);
}

/* Distinct ids of rows that are here, in rising order: so that threads share no row. */
static wf_status check_ids(const wf_slice *s, const wf_rows *rows, wf_err *err)
{
    uint64_t first = wf_table_first_row(s), end = first + s->count / s->row;

    if (!wf_rows_rise(rows) ||
        (rows->n > 0 && (wf_row_id(rows, 0) < first || wf_row_id(rows, rows->n - 1) >= end)))
        return bad_ids(s, rows, first, end, err);
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

/* The processor fetches the rest of a long row by itself. */
static WF_INLINE void fetch(const float *row, uint64_t n)
{
    for (uint64_t k = 0; k < WF_MIN(n, (uint64_t)4 * LINE); k += LINE)
        WF_PREFETCH(row + k);
}

/* A call of memcpy costs as much as a row of one or two cache lines; `size` of an element is known
 * to the compiler. */
static WF_INLINE void copy_row(void *restrict to, const void *restrict from, uint64_t n,
                               size_t size)
{
    if (n == 1)
        memcpy(to, from, size);
    else if (n % LINE == 0)
        for (uint64_t k = 0; k < n; k += LINE)
            memcpy((char *)to + k * size, (const char *)from + k * size, LINE * size);
    else
        memcpy(to, from, n * size);
}

/* Rows at[n] side by side in `to`, while those behind them, up to at[known], are fetched. */
WF_MULTIVERSION
static void gather(const float *from, const uint64_t at[], uint64_t n, uint64_t known, uint64_t row,
                   float *to)
{
    for (uint64_t i = 0; i < n; i++) {
        if (i + AHEAD < known)
            fetch(from + at[i + AHEAD], row);
        copy_row(to + i * row, from + at[i], row, sizeof *to);
    }
}

WF_MULTIVERSION
static void scatter(const float *from, const uint64_t at[], uint64_t n, uint64_t row, float *to)
{
    for (uint64_t i = 0; i < n; i++)
        copy_row(to + at[i], from + i * row, row, sizeof *to);
}

/* A block of a part's rows, and where each begins in an array. */
typedef struct block {
    uint64_t ids[BLOCK + AHEAD], at[BLOCK + AHEAD];
    uint64_t n, known; /* ids[known] and at[known] are set: the first n, and those that come next */
} block;

/* Row i and those behind it up to `end`; *b is the block that ends there, or {0}. */
static void next_block(block *b, const wf_slice *s, const wf_rows *rows, uint64_t i, uint64_t end)
{
    uint64_t first = wf_table_first_row(s), most = WF_MAX(BLOCK / s->row, (uint64_t)1);
    uint64_t from = b->known - b->n;

    memmove(b->ids, b->ids + b->n, from * sizeof *b->ids);
    memmove(b->at, b->at + b->n, from * sizeof *b->at);
    b->n = WF_MIN(most, end - i);
    b->known = WF_MIN(b->n + AHEAD, end - i);
    for (uint64_t k = from; k < b->known; k++) {
        b->ids[k] = wf_row_id(rows, i + k);
        b->at[k] = (b->ids[k] - first) * s->row;
    }
}

static WF_INLINE void fetch_values(const wf_dense *d, uint64_t at)
{
    WF_PREFETCH(wf_table_values(d, at));
    if (wf_slice_dtype(&d->base) == WF_I8)
        WF_PREFETCH(wf_table_scale(d, at));
}

/* As gather and scatter, of elements of 16 bits. */
WF_MULTIVERSION
static void gather_halves(const uint16_t *from, const uint64_t at[], uint64_t n, uint64_t known,
                          uint64_t row, uint16_t *to)
{
    for (uint64_t i = 0; i < n; i++) {
        for (uint64_t k = 0; i + AHEAD < known && k < WF_MIN(row, (uint64_t)4 * LINE);
             k += 2 * LINE)
            WF_PREFETCH(from + at[i + AHEAD] + k);
        copy_row(to + i * row, from + at[i], row, sizeof *to);
    }
}

WF_MULTIVERSION
static void scatter_halves(const uint16_t *from, const uint64_t at[], uint64_t n, uint64_t row,
                           uint16_t *to)
{
    for (uint64_t i = 0; i < n; i++)
        copy_row(to + at[i], from + i * row, row, sizeof *to);
}

/* The same where values have a type of fewer bits; to a row that is longer than a block, one. */
static void read_rows(const wf_dense *d, const block *b, float *to)
{
    uint64_t row = d->base.row;
    uint16_t halves[BLOCK];

    if (wf_row_values_are_halves(wf_slice_dtype(&d->base)) && row <= BLOCK) {
        gather_halves(d->weights->data, b->at, b->n, b->known, row, halves);
        wf_row_values_read(wf_slice_dtype(&d->base), halves, NULL, b->n * row, to);
        return;
    }
    for (uint64_t i = 0; i < b->n; i++) {
        if (i + AHEAD < b->known)
            fetch_values(d, b->at[i + AHEAD]);
        wf_row_values_read(wf_slice_dtype(&d->base), wf_table_values(d, b->at[i]),
                           wf_table_scale(d, b->at[i]), row, to + i * row);
    }
}

WF_MULTIVERSION
static void make_draws(uint64_t draws_of, const uint64_t ids[], uint64_t n, wf_draw draws[])
{
    for (uint64_t i = 0; i < n; i++)
        draws[i] = wf_draw_of(wf_fold(draws_of, ids[i]));
}

static void write_rows(const wf_dense *d, const block *b, const float *from)
{
    uint64_t row = d->base.row;
    uint16_t halves[BLOCK];
    wf_draw draws[BLOCK];

    if (wf_row_values_are_halves(wf_slice_dtype(&d->base))) {
        make_draws(wf_slice_draws(&d->base), b->ids, b->n, draws);
        wf_row_values_draw_halves(wf_slice_dtype(&d->base), from, b->n, row, draws, halves);
        scatter_halves(halves, b->at, b->n, row, d->weights->data);
        return;
    }
    for (uint64_t i = 0; i < b->n; i++)
        wf_row_values_draw(wf_slice_dtype(&d->base), from + i * row, row,
                           wf_slice_draw(&d->base, b->ids[i]), 0, wf_table_values(d, b->at[i]),
                           wf_table_scale(d, b->at[i]));
}

/* Short rows are updated side by side, in the cache: a rule is called once for many of them. */
static void update_block(const wf_dense *d, const wf_opt *opt, const block *b, const float *grad)
{
    bool is_float = wf_slice_dtype(&d->base) == WF_F32;
    uint64_t row = d->base.row;
    float w[BLOCK], in_block[WF_MAX_SLOTS][BLOCK], *slots[WF_MAX_SLOTS] = {0};

    if (is_float)
        gather(d->weights->data, b->at, b->n, b->known, row, w);
    else
        read_rows(d, b, w);
    for (uint32_t k = 0; k < d->n_slots; k++) {
        slots[k] = in_block[k];
        gather(d->slots[k], b->at, b->n, b->known, row, slots[k]);
    }
    wf_opt_apply(opt, d->base.updates, b->n * row, w, grad, slots);
    if (is_float)
        scatter(w, b->at, b->n, row, d->weights->data);
    else
        write_rows(d, b, w);
    for (uint32_t k = 0; k < d->n_slots; k++)
        scatter(slots[k], b->at, b->n, row, d->slots[k]);
}

/* Row i of a part, which is longer than a block. */
static void update_long_row(const wf_dense *d, const wf_opt *opt, uint64_t at,
                            const wf_slice_part *p, uint64_t i)
{
    uint64_t row = d->base.row, most = p->values ? row : WF_SLICE_READ;
    float *slots[WF_MAX_SLOTS] = {0}, room[WF_SLICE_READ];

    for (uint64_t from = 0, n; from < row; from += n) {
        n = WF_MIN(row - from, most);
        for (uint32_t k = 0; k < d->n_slots; k++)
            slots[k] = d->slots[k] + at + from;
        wf_opt_apply(opt, d->base.updates, n, (float *)d->weights->data + at + from,
                     wf_slice_part_values(p, i * row + from, n, room), slots);
    }
}

/* The same of a type of fewer bits, in pieces; an int8 row is one. */
static void update_long_values(const wf_dense *d, const wf_opt *opt, uint64_t at,
                               const wf_slice_part *p, uint64_t i)
{
    float *slots[WF_MAX_SLOTS] = {0}, w[WF_SLICE_READ], room[WF_SLICE_READ];
    wf_dtype dtype = wf_slice_dtype(&d->base);
    uint64_t row = d->base.row;
    wf_draw draw = wf_slice_draw(&d->base, wf_table_first_row(&d->base) + at / row);

    for (uint64_t from = 0, n; from < row; from += n) {
        n = WF_MIN(row - from, (uint64_t)WF_SLICE_READ);
        for (uint32_t k = 0; k < d->n_slots; k++)
            slots[k] = d->slots[k] + at + from;
        wf_row_values_read(dtype, wf_table_values(d, at + from), wf_table_scale(d, at), n, w);
        wf_opt_apply(opt, d->base.updates, n, w, wf_slice_part_values(p, i * row + from, n, room),
                     slots);
        wf_row_values_draw(dtype, w, n, draw, from, wf_table_values(d, at + from),
                           wf_table_scale(d, at));
    }
}

static void table_apply_range(const wf_slice_update *u, const wf_opt *opt, uint64_t begin,
                              uint64_t end)
{
    const wf_slice *s = u->slice;
    float room[BLOCK];
    block b;

    b.n = b.known = 0;
    for (uint64_t i = begin; i < end; i += b.n) {
        next_block(&b, s, &u->part.rows, i, end);
        if (s->row <= BLOCK)
            update_block(wf_table_dense(s), opt, &b,
                         wf_slice_part_values(&u->part, i * s->row, b.n * s->row, room));
        else if (wf_slice_dtype(s) == WF_F32)
            update_long_row(wf_table_dense(s), opt, b.at[0], &u->part, i);
        else
            update_long_values(wf_table_dense(s), opt, b.at[0], &u->part, i);
    }
}

static void table_answer_rows(const wf_slice *s, const wf_rows *rows, float out[])
{
    block b;

    b.n = b.known = 0;
    for (uint64_t i = 0; i < rows->n; i += b.n) {
        next_block(&b, s, rows, i, rows->n);
        if (wf_slice_dtype(s) == WF_F32)
            gather(wf_table_dense(s)->weights->data, b.at, b.n, b.known, s->row, out + i * s->row);
        else
            read_rows(wf_table_dense(s), &b, out + i * s->row);
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
    .save = wf_table_save,
    .load = wf_table_load,
    .digest = wf_dense_digest,
};
