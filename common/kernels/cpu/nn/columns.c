/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/columns.c */
#include "common/kernels/cpu/nn/columns.h"
#include "common/base/cc.h"

#include <stddef.h>
#include <string.h>

#define ROW(T)                                                                                     \
    WF_MULTIVERSION static void take_##T(const T *x, int64_t step, T *y, int64_t n)                \
    {                                                                                              \
        if (step == 1)                                                                             \
            memcpy(y, x, (size_t)n * sizeof(T));                                                   \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = x[i * step];                                                                \
    }                                                                                              \
    WF_MULTIVERSION static void add_##T(const T *y, T *x, int64_t step, int64_t n)                 \
    {                                                                                              \
        if (step == 1)                                                                             \
            for (int64_t i = 0; i < n; i++)                                                        \
                x[i] += y[i];                                                                      \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                x[i * step] += y[i];                                                               \
    }
ROW(float)
ROW(double)

/* One tap along the last axis: outputs [lo, hi) read x + first + o * stride. */
typedef struct tap {
    int64_t lo, hi, first;
} tap;

static void read_row(const wf_columns *c, const char *x, const tap *t, char *y)
{
    size_t size = wf_dtype_size(c->dtype), width = (size_t)c->s->out[2];
    int64_t step = c->s->w.stride[2], from = t->first + t->lo * step;

    memset(y, 0, (size_t)t->lo * size);
    memset(y + (size_t)t->hi * size, 0, (width - (size_t)t->hi) * size);
    if (t->hi == t->lo)
        return;
    if (c->dtype == WF_F32)
        take_float((const float *)x + from, step, (float *)y + t->lo, t->hi - t->lo);
    else
        take_double((const double *)x + from, step, (double *)y + t->lo, t->hi - t->lo);
}

static void add_row(const wf_columns *c, const char *y, const tap *t, char *x)
{
    int64_t step = c->s->w.stride[2], from = t->first + t->lo * step;

    if (t->hi == t->lo)
        return;
    if (c->dtype == WF_F32)
        add_float((const float *)y + t->lo, (float *)x + from, step, t->hi - t->lo);
    else
        add_double((const double *)y + t->lo, (double *)x + from, step, t->hi - t->lo);
}

/* The image's row that output row r reads with taps kd and kh, or -1 when it lies outside. */
static int64_t image_row(const wf_spatial *s, int64_t r, int64_t kd, int64_t kh)
{
    int64_t d = wf_spatial_at(s, 0, r / s->out[1], kd), h = wf_spatial_at(s, 1, r % s->out[1], kh);

    return d < 0 || d >= s->in[0] || h < 0 || h >= s->in[1] ? -1 : d * s->in[1] + h;
}

/* All rows of one (channel, tap). */
static void one_tap(const wf_columns *c, int64_t kd, int64_t kh, const tap *t, char *image,
                    char *columns, bool back)
{
    const wf_spatial *s = c->s;
    size_t size = wf_dtype_size(c->dtype), width = (size_t)s->out[2] * size;

    for (int64_t r = c->first; r < c->last; r++, columns += width) {
        int64_t row = image_row(s, r, kd, kh);
        char *x = image + (size_t)(row < 0 ? 0 : row * s->in[2]) * size;

        if (row >= 0 && back)
            add_row(c, columns, t, x);
        else if (row >= 0)
            read_row(c, x, t, columns);
        else if (!back)
            memset(columns, 0, width);
    }
}

static void walk(const wf_columns *c, char *image, char *columns, bool back)
{
    const wf_spatial *s = c->s;
    size_t size = wf_dtype_size(c->dtype);
    size_t row = (size_t)((c->last - c->first) * s->out[2]) * size;

    for (int64_t ch = 0; ch < c->channels; ch++, image += (size_t)s->in_size * size)
        for (int64_t k = 0; k < s->taps; k++, columns += row) {
            int64_t kw = k % s->w.kernel[2], kh = k / s->w.kernel[2];
            tap t = {.first = wf_spatial_at(s, 2, 0, kw)};

            wf_spatial_inside(s, 2, kw, &t.lo, &t.hi);
            one_tap(c, kh / s->w.kernel[1], kh % s->w.kernel[1], &t, image, columns, back);
        }
}

void wf_columns_of(const wf_columns *c, const void *image, void *columns)
{
    walk(c, (char *)(uintptr_t)image, columns, false);
}

void wf_columns_add(const wf_columns *c, const void *columns, void *image)
{
    walk(c, image, (char *)(uintptr_t)columns, true);
}
