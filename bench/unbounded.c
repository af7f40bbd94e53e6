/* SPDX-License-Identifier: Apache-2.0 */
/* bench/unbounded.c - one bucket of an unbounded table while it grows to ROWS rows (default
 * 1,600,000: a 64th of 10^8) of DIM elements (16), trained with adagrad: how much time each push
 * and pull takes on a processor, which grow the bucket by 64 rows at a time, and what memory a row
 * needs. Then lookups and updates of rows that are there, in no order.
 *
 *   bench_unbounded [ROWS [DIM]] [DTYPE] [evict | frequency | disk:FOLDER]
 *
 * DTYPE: of the values. evict: with an order of use; frequency: also with counts of it.
 * disk:FOLDER: a tenth of the rows in memory and the others in files of the folder; then pushes and
 * pulls of ids by Zipf's law, beside the same of a table without a limit.
 */
#include "common/base/row_key.h"
#include "common/base/size.h"
#include "ps/hashed.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WIDEST = 1024, EACH = 64, LOOKUPS = 1 << 14 };

/* Time of this thread on a processor: others may have it in between. */
static int64_t used_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

typedef struct part {
    uint64_t keys[EACH];
    float values[EACH * WIDEST], out[EACH * WIDEST];
    uint64_t width;
    wf_slice_part part;
} part;

static int by_key(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Row n of the bucket 0. */
static uint64_t key_of(uint64_t n)
{
    return wf_row_key((int64_t)n) >> WF_ROW_BUCKET_BITS;
}

static void name_rows(part *p)
{
    qsort(p->keys, EACH, sizeof p->keys[0], by_key);
    p->part = (wf_slice_part){
        .values = p->values, .n = EACH * p->width, .rows = {EACH, (const uint8_t *)p->keys}};
}

static int64_t push(wf_slice *s, const wf_opt *opt, const part *p)
{
    int64_t from = used_ns();

    if (s->ops->check(s, &p->part, NULL) != WF_OK ||
        wf_slice_apply(s, opt, &p->part, NULL) != WF_OK)
        exit(1);
    return used_ns() - from;
}

static int64_t pull(const wf_slice *s, part *p)
{
    int64_t from = used_ns();

    s->ops->answer_rows(s, &p->part.rows, p->out);
    return used_ns() - from;
}

static int by_time(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static void print_times(const char *what, int64_t ns[], size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)ns[i];
    qsort(ns, n, sizeof *ns, by_time);
    printf("%s of %d rows: mean %.1f us, median %.1f us, 99.9 %% %.1f us, longest %.1f us\n", what,
           EACH, sum / (double)n / 1e3, (double)ns[n / 2] / 1e3, (double)ns[n - 1 - n / 1000] / 1e3,
           (double)ns[n - 1] / 1e3);
}

/* Bytes of a row's values, with their scale, and slots. */
static double payload_of(const wf_hashed *h)
{
    wf_dtype dtype = wf_slice_dtype(&h->base);

    return (double)(wf_row_values_bytes(dtype, h->base.row) + (dtype == WF_I8 ? sizeof(float) : 0) +
                    h->n_slots * h->base.row * sizeof(float));
}

static void print_memory(const wf_hashed *h)
{
    double rows = h->rows.records.n, payload = payload_of(h);
    double bytes = (double)wf_row_set_bytes(&h->rows) / rows;

    printf("%9.0f rows: %.1f bytes each, %.3f times the payload of %.0f\n", rows, bytes,
           bytes / payload, payload);
}

static void grow(wf_slice *s, const wf_opt *opt, uint64_t rows, part *p)
{
    size_t n = rows / EACH, pushes = 0;
    int64_t *push_ns = calloc(n + 1, sizeof *push_ns), *pull_ns = calloc(n + 1, sizeof *pull_ns);
    double worst = 0, payload = payload_of((wf_hashed *)s);

    if (!push_ns || !pull_ns)
        exit(1);
    for (uint64_t next = 0; pushes < n; pushes++) {
        double each;

        for (uint64_t i = 0; i < EACH; i++)
            p->keys[i] = key_of(next++);
        name_rows(p);
        push_ns[pushes] = push(s, opt, p);
        pull_ns[pushes] = pull(s, p);
        each = (double)wf_row_set_bytes(&((wf_hashed *)s)->rows) / (double)next;
        if (next > 20000)
            worst = WF_MAX(worst, each / payload);
        if (pushes + 1 == n / 16 || pushes + 1 == n / 4 || pushes + 1 == n)
            print_memory((wf_hashed *)s);
    }
    printf("at most %.3f times the payload from 20,000 rows on\n", worst);
    print_times("push", push_ns, n);
    print_times("pull", pull_ns, n);
    free(push_ns);
    free(pull_ns);
}

static void look_up(wf_slice *s, const wf_opt *opt, uint64_t rows, part *p)
{
    int64_t pulls = 0, pushes = 0;
    double n = (double)LOOKUPS * EACH;

    for (uint64_t k = 0; k < LOOKUPS; k++) {
        for (uint64_t i = 0; i < EACH; i++)
            p->keys[i] = key_of(wf_rng_below((wf_rng_key){1, 2}, k * EACH + i, rows));
        name_rows(p);
        for (uint64_t i = 1; i < EACH; i++)
            if (p->keys[i] == p->keys[i - 1])
                p->part.rows.n = 1; /* drawn twice: leave this one short */
        p->part.n = p->part.rows.n * p->width;
        pulls += pull(s, p);
        pushes += push(s, opt, p);
    }
    printf("lookups %.1f million rows/s, updates %.1f million rows/s\n", n / (double)pulls * 1e3,
           n / (double)pushes * 1e3);
}

/* A rank from 0 to n - 1, by Zipf's law with exponent 1: the inverse of the integral of 1 / x. */
static uint64_t rank_of(double u, uint64_t n)
{
    return WF_MIN((uint64_t)pow((double)n + 1, u) - 1, n - 1);
}

/* As a batch names them: each id once. Which id has which rank goes by its number's hash, so that
 * those that are often named came at any time. */
static void draw_zipf(part *p, uint64_t round, uint64_t rows)
{
    uint64_t n = 0;

    for (uint64_t i = 0; i < EACH; i++) {
        uint64_t rank = rank_of(wf_rng_f64((wf_rng_key){3, 4}, round * EACH + i), rows);

        p->keys[i] = key_of(wf_rng_fold(5, rank) % rows);
    }
    name_rows(p);
    for (uint64_t i = 0; i < EACH; i++)
        if (i == 0 || p->keys[i] != p->keys[n - 1])
            p->keys[n++] = p->keys[i];
    p->part.rows.n = n;
    p->part.n = n * p->width;
}

static int64_t wall_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Of wall time, since a disk is waited for. */
static void train_by_zipf(const char *what, wf_slice *s, const wf_opt *opt, uint64_t rows, part *p)
{
    const wf_hashed *h = (const wf_hashed *)s;
    int64_t pulls = 0, pushes = 0;
    uint64_t n = 0;

    for (uint64_t k = 0; k < LOOKUPS; k++) {
        int64_t from;

        draw_zipf(p, k, rows);
        from = wall_ns();
        pull(s, p);
        pulls += wall_ns() - from;
        from = wall_ns();
        push(s, opt, p);
        pushes += wall_ns() - from;
        n += p->part.rows.n;
    }
    printf("%s: %.0f %% of rows in files, %.0f MiB of memory, %.0f MiB on disk; pulls %.2f million "
           "rows/s, pushes %.2f million rows/s\n",
           what, 100.0 * wf_cold_rows_n(&h->cold) / (wf_cold_rows_n(&h->cold) + h->rows.records.n),
           (double)wf_slice_held(s) / (1 << 20), (double)wf_slice_on_disk(s) / (1 << 20),
           (double)n / (double)pulls * 1e3, (double)n / (double)pushes * 1e3);
}

static wf_slice *open_and_fill(const wf_slice *like, const wf_opt *opt, uint64_t rows, part *p)
{
    wf_slice *s = NULL;

    if (wf_slice_new(&wf_slice_hashed, like, opt, &s, NULL) != WF_OK)
        exit(1);
    for (uint64_t next = 0; next < rows;) {
        for (uint64_t i = 0; i < EACH; i++)
            p->keys[i] = key_of(next++);
        name_rows(p);
        push(s, opt, p);
    }
    return s;
}

static void compare_with_disk(const wf_slice *like, const wf_opt *opt, uint64_t rows, part *p)
{
    wf_slice without = *like, with = *like;
    wf_slice *s;

    without.policy.disk = NULL;
    without.policy.max_rows = 0;
    with.policy.max_rows = rows / 10;
    s = open_and_fill(&without, opt, rows, p);
    train_by_zipf("no limit", s, opt, rows, p);
    wf_slice_free(&s);
    s = open_and_fill(&with, opt, rows, p);
    train_by_zipf("when_full: disk", s, opt, rows, p);
    wf_slice_free(&s);
}

/* Numbers in their order, and words in any. */
static bool read_arguments(int argc, char **argv, uint64_t numbers[2], wf_slice *like)
{
    int n = 0;

    for (int i = 1; i < argc; i++) {
        wf_dtype dtype = wf_dtype_of(argv[i]);

        if (strcmp(argv[i], "evict") == 0 || strcmp(argv[i], "frequency") == 0) {
            like->policy.max_rows = WF_RECORDS_MOST;
            like->policy.by_frequency = argv[i][0] == 'f';
        } else if (strncmp(argv[i], "disk:", 5) == 0)
            like->policy.disk = argv[i] + 5;
        else if (wf_row_values_known(dtype))
            like->policy.dtype = dtype;
        else if (n == 2 || (numbers[n++] = strtoull(argv[i], NULL, 10)) == 0)
            return false;
    }
    like->count = like->row = numbers[1];
    return numbers[1] <= WIDEST;
}

int main(int argc, char **argv)
{
    uint64_t numbers[] = {1600000, 16}, rows;
    wf_slice like = {.trainable = true, .policy = {.first = {WF_UNIFORM, 0, 0.05}, .rounding = 7}};
    part *p = calloc(1, sizeof *p);
    wf_slice *s;
    wf_opt opt;

    if (!read_arguments(argc, argv, numbers, &like)) {
        fprintf(stderr, "bench_unbounded [ROWS [DIM]] [float32|bfloat16|float16|int8] "
                        "[evict | frequency | disk:FOLDER]\n");
        return 2;
    }
    if (!p || wf_opt_init(&opt, "adagrad", 0, NULL, NULL, NULL) != WF_OK)
        return 1;
    rows = WF_MAX(numbers[0], (uint64_t)EACH * 16);
    p->width = like.row;
    for (uint64_t i = 0; i < EACH * like.row; i++)
        p->values[i] = 0.01F * (float)(i % 17);
    if (like.policy.disk) {
        compare_with_disk(&like, &opt, rows / EACH * EACH, p);
        free(p);
        return 0;
    }
    if (wf_slice_new(&wf_slice_hashed, &like, &opt, &s, NULL) != WF_OK)
        return 1;
    grow(s, &opt, rows, p);
    look_up(s, &opt, rows / EACH * EACH, p);
    wf_slice_free(&s);
    free(p);
    return 0;
}
