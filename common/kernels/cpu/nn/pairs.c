/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/pairs.c */
#include "common/kernels/cpu/nn/pairs.h"
#include "common/base/cc.h"
#include "common/base/size.h"

#include <string.h>

/* Rows shorter than this are worked on several at a time, laid side by side: a loop over 7 or 14
 * pairs would hardly enter its vectors. */
enum { SHORT = 64, BLOCK = 1024 };

/* Rows of y at a time. */
static int64_t rows_at_once(const wf_pairs *p)
{
    return p->w < 1 || p->w >= SHORT ? 1 : BLOCK / (2 * p->w);
}

/* Rows of pairs from x and back, `step` elements from one to the next. */
static void gather(const float *x, int64_t step, int64_t rows, int64_t n, float *to)
{
    for (int64_t r = 0; r < rows; r++)
        memcpy(to + r * n, x + r * step, (size_t)n * sizeof(float));
}

static void scatter(const float *from, int64_t rows, int64_t n, float *x, int64_t step)
{
    for (int64_t r = 0; r < rows; r++)
        memcpy(x + r * step, from + r * n, (size_t)n * sizeof(float));
}

static inline float larger(float a, float b)
{
    float most = b > a ? b : a;

    return b != b ? b : most;
}

WF_MULTIVERSION static void max_row(const float *a, const float *b, float *y, int64_t n)
{
    WF_NO_OVERLAP
    for (int64_t i = 0; i < n; i++)
        y[i] = larger(larger(a[2 * i], a[2 * i + 1]), larger(b[2 * i], b[2 * i + 1]));
}

void wf_pairs_max(const wf_pairs *p, const float *x, float *y)
{
    int64_t rows = rows_at_once(p), step = 2 * p->width, n = 2 * p->w;
    float a[BLOCK], b[BLOCK];

    for (int64_t r = 0; r < p->h; r += rows) {
        int64_t some = WF_MIN(rows, p->h - r);
        const float *upper = x + r * step, *lower = upper + p->width;

        if (some > 1) {
            gather(upper, step, some, n, a);
            gather(lower, step, some, n, b);
            upper = a;
            lower = b;
        }
        max_row(upper, lower, y + r * p->w, some * p->w);
    }
}

WF_MULTIVERSION static void grad_row(const float *a, const float *b, const float *y,
                                     const float *dy, float *da, float *db, int64_t n)
{
    WF_NO_OVERLAP
    for (int64_t i = 0; i < n; i++) {
        float left = dy[i], top = y[i], to;

        to = a[2 * i] == top ? left : 0;
        left = a[2 * i] == top ? 0 : left;
        da[2 * i] = to;
        to = a[2 * i + 1] == top ? left : 0;
        left = a[2 * i + 1] == top ? 0 : left;
        da[2 * i + 1] = to;
        to = b[2 * i] == top ? left : 0;
        left = b[2 * i] == top ? 0 : left;
        db[2 * i] = to;
        db[2 * i + 1] = b[2 * i + 1] == top ? left : 0;
    }
}

/* What lies behind the pairs of a row, and below them. */
static void clear_rest(const wf_pairs *p, float *dx)
{
    size_t rest = (size_t)(p->width - 2 * p->w) * sizeof(float);

    for (int64_t r = 0; rest && r < 2 * p->h; r++)
        memset(dx + r * p->width + 2 * p->w, 0, rest);
    memset(dx + 2 * p->h * p->width, 0,
           (size_t)((p->height - 2 * p->h) * p->width) * sizeof(float));
}

void wf_pairs_max_grad(const wf_pairs *p, const float *x, const float *y, const float *dy,
                       float *dx)
{
    int64_t rows = rows_at_once(p), step = 2 * p->width, n = 2 * p->w;
    float a[BLOCK], b[BLOCK], da[BLOCK], db[BLOCK];

    for (int64_t r = 0; r < p->h; r += rows) {
        int64_t some = WF_MIN(rows, p->h - r), at = r * step;

        if (some == 1) {
            grad_row(x + at, x + at + p->width, y + r * p->w, dy + r * p->w, dx + at,
                     dx + at + p->width, p->w);
            continue;
        }
        gather(x + at, step, some, n, a);
        gather(x + at + p->width, step, some, n, b);
        grad_row(a, b, y + r * p->w, dy + r * p->w, da, db, some * p->w);
        scatter(da, some, n, dx + at, step);
        scatter(db, some, n, dx + at + p->width, step);
    }
    clear_rest(p, dx);
}
