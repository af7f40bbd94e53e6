/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/pairs_template.h - the passes of pairs.h, of one type of x and y. A
 * template for pairs.c: T, SUFFIX, WIDE and AS_T, which make a float of a T and one that was a T a
 * T again, are defined before it is included, and are not any more behind it. */
#define gather WF_JOIN(gather, SUFFIX)
#define max_row WF_JOIN(max_row, SUFFIX)
#define grad_row WF_JOIN(grad_row, SUFFIX)
#define wf_pairs_max WF_JOIN(wf_pairs_max, SUFFIX)
#define wf_pairs_max_grad WF_JOIN(wf_pairs_max_grad, SUFFIX)

/* Rows of pairs from x, `step` elements from one to the next. */
static void gather(const T *x, int64_t step, int64_t rows, int64_t n, T *to)
{
    for (int64_t r = 0; r < rows; r++)
        memcpy(to + r * n, x + r * step, (size_t)n * sizeof(T));
}

WF_MULTIVERSION static void max_row(const T *a, const T *b, T *y, int64_t n)
{
    WF_NO_OVERLAP
    for (int64_t i = 0; i < n; i++)
        y[i] = AS_T(larger(larger(WIDE(a[2 * i]), WIDE(a[2 * i + 1])),
                           larger(WIDE(b[2 * i]), WIDE(b[2 * i + 1]))));
}

void wf_pairs_max(const wf_pairs *p, const T *x, T *y)
{
    int64_t rows = rows_at_once(p), step = 2 * p->width, n = 2 * p->w;
    T a[BLOCK], b[BLOCK];

    for (int64_t r = 0; r < p->h; r += rows) {
        int64_t some = WF_MIN(rows, p->h - r);
        const T *upper = x + r * step, *lower = upper + p->width;

        if (some > 1) {
            gather(upper, step, some, n, a);
            gather(lower, step, some, n, b);
            upper = a;
            lower = b;
        }
        max_row(upper, lower, y + r * p->w, some * p->w);
    }
}

WF_MULTIVERSION static void grad_row(const T *a, const T *b, const T *y, const float *dy, float *da,
                                     float *db, int64_t n)
{
    WF_NO_OVERLAP
    for (int64_t i = 0; i < n; i++) {
        float left = dy[i], top = WIDE(y[i]), to;

        to = WIDE(a[2 * i]) == top ? left : 0;
        left = WIDE(a[2 * i]) == top ? 0 : left;
        da[2 * i] = to;
        to = WIDE(a[2 * i + 1]) == top ? left : 0;
        left = WIDE(a[2 * i + 1]) == top ? 0 : left;
        da[2 * i + 1] = to;
        to = WIDE(b[2 * i]) == top ? left : 0;
        left = WIDE(b[2 * i]) == top ? 0 : left;
        db[2 * i] = to;
        db[2 * i + 1] = WIDE(b[2 * i + 1]) == top ? left : 0;
    }
}

void wf_pairs_max_grad(const wf_pairs *p, const T *x, const T *y, const float *dy, float *dx)
{
    int64_t rows = rows_at_once(p), step = 2 * p->width, n = 2 * p->w;
    T a[BLOCK], b[BLOCK];
    float da[BLOCK], db[BLOCK];

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

#undef gather
#undef max_row
#undef grad_row
#undef wf_pairs_max
#undef wf_pairs_max_grad
#undef T
#undef SUFFIX
#undef WIDE
#undef AS_T
