/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/product/vectors.c */
#include "common/kernels/cpu/product/vectors.h"
#include "common/base/cc.h"
#include "common/base/size.h"
#include "common/kernels/cpu/lanes.h"

#include <stddef.h>

enum {
    GRAIN = 1 << 16, /* multiply-adds that are worth a thread */
    ROWS = 8,        /* that are added to sums at a time */
    COLUMNS = 512    /* sums that stay in the first cache */
};

typedef struct job {
    const wf_product *p;
    const float *a, *b, *bias;
    float *c;
    bool add, relu;
} job;

static bool is_column(const wf_product *p)
{
    return p->n == 1;
}

bool wf_vectors_fit(const wf_product *p)
{
    return p->dtype == WF_F32 && p->alpha == 1 && (p->beta == 0 || p->beta == 1) && p->k > 0 &&
           (is_column(p) || p->k == 1);
}

/* What becomes of sum i, which is element i of C and of its column j. */
static WF_INLINE float finished(const job *j, int64_t i, int64_t column, float sum)
{
    if (j->add)
        sum += j->c[i];
    if (j->bias)
        sum += j->bias[column];
    return j->relu && sum < 0 ? 0 : sum;
}

static WF_INLINE void add_lanes(const float *x, const float *y, wf_lanes_f32 *sum)
{
    wf_lanes_f32 u, v;

    memcpy(&u, x, sizeof u);
    memcpy(&v, y, sizeof v);
    *sum += u * v;
}

/* Rows [begin, end) of C [m, 1] = A [m, k] b. */
WF_MULTIVERSION
static void rows_by_vector(const job *j, int64_t begin, int64_t end)
{
    const int64_t k = j->p->k;

    for (int64_t i = begin; i < end; i++) {
        const float *a = j->a + i * k, *b = j->b;
        wf_lanes_f32 first = {0}, second = {0};
        int64_t at = 0;
        float sum;

        for (; at + 2 * WF_LANES <= k; at += 2 * WF_LANES) {
            add_lanes(a + at, b + at, &first);
            add_lanes(a + at + WF_LANES, b + at + WF_LANES, &second);
        }
        for (; at + WF_LANES <= k; at += WF_LANES)
            add_lanes(a + at, b + at, &first);
        first += second;
        sum = wf_lanes_sum_f32(&first);
        for (; at < k; at++)
            sum += a[at] * b[at];
        j->c[i] = finished(j, i, 0, sum);
    }
}

/* sums[n] += b[k] of `rows` rows of x, which are ld apart. */
static WF_INLINE void add_rows(int rows, const float *restrict x, int64_t ld, const float *b,
                               int64_t n, float *restrict sums)
{
    for (int64_t i = 0; i < n; i++) {
        float sum = sums[i];

#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
            sum += x[r * ld + i] * b[r];
        sums[i] = sum;
    }
}

/* Rows [begin, end) of C [m, 1] = A [k, m]' b, in the order of k. */
WF_MULTIVERSION
static void columns_by_vector(const job *j, int64_t begin, int64_t end)
{
    const int64_t m = j->p->m, k = j->p->k;
    float sums[COLUMNS];

    for (int64_t from = begin; from < end; from += COLUMNS) {
        int64_t n = WF_MIN(end - from, (int64_t)COLUMNS), p = 0;

        memset(sums, 0, sizeof sums);
        for (; p + ROWS <= k; p += ROWS)
            add_rows(ROWS, j->a + p * m + from, m, j->b + p, n, sums);
        for (; p < k; p++)
            add_rows(1, j->a + p * m + from, m, j->b + p, n, sums);
        for (int64_t i = 0; i < n; i++)
            j->c[from + i] = finished(j, from + i, 0, sums[i]);
    }
}

/* Rows [begin, end) of C [m, n] = a b. */
WF_MULTIVERSION
static void pairs(const job *j, int64_t begin, int64_t end)
{
    const int64_t n = j->p->n;
    const bool plain = !j->add && !j->bias && !j->relu;

    for (int64_t i = begin; i < end; i++) {
        const float a = j->a[i], *restrict b = j->b;
        float *restrict c = j->c + i * n;

        for (int64_t l = 0; l < n && plain; l++)
            c[l] = a * b[l];
        for (int64_t l = 0; l < n && !plain; l++)
            c[l] = finished(j, i * n + l, l, a * b[l]);
    }
}

static void range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    if (!is_column(j->p))
        pairs(j, begin, end);
    else if (j->p->trans_a && j->p->k > 1)
        columns_by_vector(j, begin, end);
    else
        rows_by_vector(j, begin, end);
}

void wf_vectors_run(const wf_product *p, const float *bias, bool relu, wf_pool *pool)
{
    job j = {p, p->a, p->b, bias, p->c, p->beta == 1, relu};
    int64_t each = WF_MAX(is_column(p) ? p->k : p->n, (int64_t)1);

    wf_pool_for(pool, p->m, WF_MAX(GRAIN / each, (int64_t)1), range, &j);
}
