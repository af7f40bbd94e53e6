/* SPDX-License-Identifier: Apache-2.0 */
/* bench/table_rows.c - a slice of a table without any wire, with adagrad: how much time a row takes
 * that is looked up or updated by its id, and a byte-by-byte copy of the same rows by a loop that
 * fetches them in advance, in turns.
 *
 *   bench_table_rows [ROWS [DIM]] [DTYPE]
 *
 * 10,000,000 rows of 16 float32 by default. Each batch is of 16,384 distinct rows in rising order.
 */
#include "common/base/cc.h"
#include "common/base/clock.h"
#include "common/base/size.h"
#include "ps/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IDS = 16 << 10, BATCHES = 64, TURNS = 5, AHEAD = 32 };

typedef struct bench {
    wf_slice *slice;
    wf_opt opt;
    uint64_t rows, dim;
    wf_dtype dtype;
    uint64_t (*ids)[IDS]; /* [BATCHES] */
    float *values;        /* [IDS][dim] */
    float *none;          /* [dim] zeros */
} bench;

static void must(wf_status rc, const wf_err *err)
{
    if (rc == WF_OK)
        return;
    fprintf(stderr, "bench_table_rows: %s\n", err->what);
    exit(1);
}

static int by_id(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Distinct: one of each of IDS ranges of rows. */
static void name_rows(bench *b)
{
    uint64_t state = 1, range = b->rows / IDS;

    b->ids = malloc(BATCHES * sizeof *b->ids);
    wf_assert(b->ids);
    for (uint32_t k = 0; k < BATCHES; k++) {
        for (uint32_t i = 0; i < IDS; i++) {
            state = state * 6364136223846793005U + 1442695040888963407U;
            b->ids[k][i] = i * range + (state >> 33) % range;
        }
        qsort(b->ids[k], IDS, sizeof b->ids[k][0], by_id);
    }
}

static void push(bench *b, uint32_t k)
{
    wf_slice_part part = {
        .values = b->values, .n = IDS * b->dim, .rows = {IDS, (const uint8_t *)b->ids[k]}};
    wf_slice_update u;
    wf_err err;

    must(wf_slice_apply_begin(b->slice, &part, &u, &err), &err);
    b->slice->ops->apply_range(&u, &b->opt, 0, u.units);
    b->slice->ops->apply_end(&u);
}

static void pull(bench *b, uint32_t k)
{
    wf_rows rows = {IDS, (const uint8_t *)b->ids[k]};

    b->slice->ops->answer_rows(b->slice, &rows, b->values);
}

/* What a push reads and writes of the slice, or a pull reads, in place and as bytes. */
WF_MULTIVERSION
static void touch(bench *b, uint32_t k, bool writes)
{
    const wf_dense *d = wf_table_dense(b->slice);
    uint64_t bytes = wf_row_values_bytes(b->dtype, b->dim), wide = b->dim * sizeof(float);
    char *values = d->weights->data, *slot = (char *)d->slots[0], *out = (char *)b->values;
    const char *none = (char *)b->none;

    for (uint32_t i = 0; i < IDS; i++) {
        char *row = values + b->ids[k][i] * bytes, *at = slot + b->ids[k][i] * wide;

        if (i + AHEAD < IDS) {
            uint64_t next = b->ids[k][i + AHEAD];

            for (uint64_t j = 0; j < bytes; j += 64)
                WF_PREFETCH(values + next * bytes + j);
            for (uint64_t j = 0; writes && j < wide; j += 64)
                WF_PREFETCH(slot + next * wide + j);
        }
        if (!writes) {
            memcpy(out + (uint64_t)i * wide, row, bytes);
            continue;
        }
        for (uint64_t j = 0; j < bytes; j++)
            row[j] ^= none[j];
        for (uint64_t j = 0; j < wide; j++)
            at[j] ^= none[j];
    }
}

static void touch_push(bench *b, uint32_t k)
{
    touch(b, k, true);
}

static void touch_pull(bench *b, uint32_t k)
{
    touch(b, k, false);
}

static double ns_of(bench *b, void (*work)(bench *b, uint32_t k))
{
    int64_t began_ns = wf_now_ns();

    for (uint32_t k = 0; k < BATCHES; k++)
        work(b, k);
    return (double)(wf_now_ns() - began_ns) / ((double)BATCHES * IDS);
}

int main(int argc, char *argv[])
{
    static const struct {
        const char *name;
        void (*work)(bench *b, uint32_t k), (*bare)(bench *b, uint32_t k);
    } works[] = {{"pull", pull, touch_pull}, {"push", push, touch_push}};
    bench b = {.rows = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000,
               .dim = argc > 2 ? strtoull(argv[2], NULL, 10) : 16,
               .dtype = WF_F32};
    wf_slice like = {.trainable = true};
    wf_err err;

    if (argc > 3)
        b.dtype = wf_dtype_of(argv[3]);
    if (b.rows < IDS || b.dim < 1 || b.dim > 1024) {
        fprintf(stderr, "usage: bench_table_rows [ROWS [DIM]] [DTYPE]: at least %d rows\n", IDS);
        return 2;
    }
    like.row = b.dim;
    like.count = b.rows * b.dim;
    like.policy.dtype = b.dtype;
    must(wf_opt_init(&b.opt, "adagrad", 0, NULL, NULL, &err), &err);
    must(wf_slice_new(&wf_slice_table, &like, &b.opt, &b.slice, &err), &err);
    b.values = calloc(IDS * b.dim, sizeof *b.values);
    b.none = calloc(b.dim, sizeof *b.none);
    wf_assert(b.values && b.none);
    name_rows(&b);
    printf("work  ns a row  bare  times\n");
    for (int turn = 0; turn < TURNS; turn++)
        for (size_t w = 0; w < WF_COUNT(works); w++) {
            double ours = ns_of(&b, works[w].work), bare = ns_of(&b, works[w].bare);

            printf("%s  %8.1f  %4.1f  %5.2f\n", works[w].name, ours, bare, ours / bare);
        }
    wf_slice_free(&b.slice);
    free(b.ids);
    free(b.values);
    free(b.none);
    return 0;
}
