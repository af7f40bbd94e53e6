/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/conv_rows.c */
#include "common/kernels/cpu/conv_rows.h"
#include "common/base/size.h"
#include "common/kernels/cpu/bf16.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/product.h"

#include <string.h>

enum { ALIGN = 64, BLOCK = 16 };

struct wf_conv_rows {
    wf_onednn_conv_shape s;
    int64_t in, out, taps; /* pixels of an image and of a map; taps of a channel */
    wf_product_way *product;
    /* Where in the workspace: rows of images, maps and weights, rounded; columns, rounded, or their
     * gradients in f32; what is made, in rows. */
    size_t images, maps, weights, columns, made;
};

typedef struct job {
    const wf_conv_rows *v;
    const float *from;
    void *to;
    int64_t inner, outer; /* an item: [outer, inner] here, [inner, outer] there */
} job;

/* Items [channels, pixels] of f32 into [pixels, channels] of bfloat16. */
static void round_across(const float *x, int64_t channels, int64_t pixels, uint16_t *y)
{
    for (int64_t p0 = 0; p0 < pixels; p0 += BLOCK)
        for (int64_t c0 = 0; c0 < channels; c0 += BLOCK) {
            int64_t n = WF_MIN((int64_t)BLOCK, channels - c0);

            for (int64_t p = p0; p < WF_MIN(p0 + BLOCK, pixels); p++) {
                float some[BLOCK];

                for (int64_t c = 0; c < n; c++)
                    some[c] = x[(c0 + c) * pixels + p];
                wf_round_to_bf16(some, y + p * channels + c0, n);
            }
        }
}

static void round_items(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    int64_t size = j->inner * j->outer;

    for (int64_t i = begin; i < end; i++)
        round_across(j->from + i * size, j->outer, j->inner, (uint16_t *)j->to + i * size);
}

/* Maps [images, m, pixels] into [m, images, pixels]. */
static void round_maps(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    int64_t n = j->v->out, images = j->v->s.images, m = j->v->s.m;

    for (int64_t i = begin; i < end; i++)
        for (int64_t k = 0; k < images; k++)
            wf_round_to_bf16(j->from + (k * m + i) * n, (uint16_t *)j->to + (i * images + k) * n,
                             n);
}

/* Items [pixels, channels] into [channels, pixels]. */
static void turn_items(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    int64_t n = j->inner, m = j->outer;

    for (int64_t i = begin; i < end; i++) {
        const float *x = j->from + i * n * m;
        float *y = (float *)j->to + i * n * m;

        for (int64_t p0 = 0; p0 < m; p0 += BLOCK)
            for (int64_t c = 0; c < n; c++)
                for (int64_t p = p0; p < WF_MIN(p0 + BLOCK, m); p++)
                    y[c * m + p] = x[p * n + c];
    }
}

/* Where tap k of map pixel o lies in an image; -1 in the padding. */
static int64_t pixel(const wf_onednn_conv_shape *s, int64_t o, int64_t k)
{
    int64_t h = o / s->out[1] * s->stride[0] + k / s->kernel[1] * s->dilation[0] - s->before[0];
    int64_t w = o % s->out[1] * s->stride[1] + k % s->kernel[1] * s->dilation[1] - s->before[1];

    return h < 0 || h >= s->in[0] || w < 0 || w >= s->in[1] ? -1 : h * s->in[1] + w;
}

static void columns_of(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const wf_conv_rows *v = j->v;
    size_t row = (size_t)v->s.c * sizeof(uint16_t);

    for (int64_t i = begin; i < end; i++) {
        const char *x = (const char *)j->from + (size_t)(i * v->in) * row;
        char *to = (char *)j->to + (size_t)(i * v->out * v->taps) * row;

        for (int64_t o = 0; o < v->out; o++)
            for (int64_t k = 0; k < v->taps; k++, to += row) {
                int64_t at = pixel(&v->s, o, k);

                if (at < 0)
                    memset(to, 0, row);
                else
                    memcpy(to, x + (size_t)at * row, row);
            }
    }
}

WF_MULTIVERSION static void add(const float *x, float *y, int64_t n)
{
    WF_NO_OVERLAP
    for (int64_t i = 0; i < n; i++)
        y[i] += x[i];
}

/* The way back of columns_of, in f32. */
static void add_columns(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const wf_conv_rows *v = j->v;

    for (int64_t i = begin; i < end; i++) {
        const float *from = j->from + i * v->out * v->taps * v->s.c;
        float *x = (float *)j->to + i * v->in * v->s.c;

        memset(x, 0, (size_t)(v->in * v->s.c) * sizeof(float));
        for (int64_t o = 0; o < v->out; o++)
            for (int64_t k = 0; k < v->taps; k++, from += v->s.c) {
                int64_t at = pixel(&v->s, o, k);

                if (at >= 0)
                    add(from, x + at * v->s.c, v->s.c);
            }
    }
}

static size_t room(size_t *end, int64_t elems, size_t size)
{
    size_t at = *end;

    *end += wf_align_up((size_t)elems * size, ALIGN);
    return at;
}

wf_status wf_conv_rows_prepare(wf_prep *prep, const wf_onednn_conv_shape *s, wf_conv_rows **out,
                               wf_err *err)
{
    wf_conv_rows *v = wf_arena_alloc(prep->arena, sizeof *v);
    bool forward = s->way == WF_ONEDNN_FORWARD, weights = s->way == WF_ONEDNN_WEIGHTS;
    int64_t rows, wide;
    wf_product p = {.dtype = WF_F32, .alpha = 1};
    size_t end;

    *out = NULL;
    if (!v)
        return wf_fail_nomem(err, sizeof *v);
    *v = (wf_conv_rows){.s = *s,
                        .in = s->in[0] * s->in[1],
                        .out = s->out[0] * s->out[1],
                        .taps = s->kernel[0] * s->kernel[1]};
    rows = s->images * v->out;
    wide = v->taps * s->c;
    p.m = weights ? s->m : rows;
    p.n = forward ? s->m : wide;
    p.k = forward ? wide : weights ? rows : s->m;
    p.trans_b = forward;
    WF_TRY(wf_product_prepare(prep, &p, WF_PRODUCT_ROUNDED, &v->product, err));
    if (!wf_product_is_bf16(v->product)) {
        wf_product_release(v->product);
        return WF_OK;
    }
    end = wf_align_up(prep->workspace_bytes, ALIGN);
    v->images = room(&end, s->way == WF_ONEDNN_DATA ? 0 : s->images * v->in * s->c, 2);
    v->maps = room(&end, forward ? 0 : rows * s->m, 2);
    v->weights = room(&end, weights ? 0 : s->m * wide, 2);
    v->columns = room(&end, rows * wide, s->way == WF_ONEDNN_DATA ? 4 : 2);
    v->made = room(&end,
                   forward   ? rows * s->m
                   : weights ? s->m * wide
                             : s->images * v->in * s->c,
                   4);
    prep->workspace_bytes = end;
    *out = v;
    return WF_OK;
}

void wf_conv_rows_release(wf_conv_rows *v)
{
    if (v)
        wf_product_release(v->product);
}

static void each(const wf_run *run, const wf_conv_rows *v, wf_pool_fn *fn, int64_t items,
                 int64_t inner, int64_t outer, const void *from, void *to)
{
    job j = {v, from, to, inner, outer};

    wf_pool_for(run->pool, items, WF_GRAIN / (inner * outer + 1) + 1, fn, &j);
}

static void make_columns(const wf_conv_rows *v, const wf_run *run, const float *x)
{
    char *at = run->workspace;

    each(run, v, round_items, v->s.images, v->in, v->s.c, x, at + v->images);
    each(run, v, columns_of, v->s.images, v->out, v->taps * v->s.c, at + v->images,
         at + v->columns);
}

void wf_conv_rows_go(const wf_conv_rows *v, const wf_run *run, float *x, float *w, float *y)
{
    const wf_onednn_conv_shape *s = &v->s;
    char *at = run->workspace;

    if (s->way != WF_ONEDNN_DATA)
        make_columns(v, run, x);
    if (s->way == WF_ONEDNN_DATA)
        each(run, v, round_items, s->images, v->out, s->m, y, at + v->maps);
    if (s->way == WF_ONEDNN_WEIGHTS)
        each(run, v, round_maps, s->m, v->out, s->images, y, at + v->maps);
    if (s->way != WF_ONEDNN_WEIGHTS)
        each(run, v, round_items, s->m, v->taps, s->c, w, at + v->weights);
    switch (s->way) {
    case WF_ONEDNN_FORWARD:
        wf_product_go(v->product, run, at + v->columns, at + v->weights, NULL, at + v->made);
        each(run, v, turn_items, s->images, s->m, v->out, at + v->made, y);
        break;
    case WF_ONEDNN_DATA:
        wf_product_go(v->product, run, at + v->maps, at + v->weights, NULL, at + v->columns);
        each(run, v, add_columns, s->images, v->out, v->taps * s->c, at + v->columns, at + v->made);
        each(run, v, turn_items, s->images, s->c, v->in, at + v->made, x);
        break;
    case WF_ONEDNN_WEIGHTS:
        wf_product_go(v->product, run, at + v->maps, at + v->columns, NULL, at + v->made);
        each(run, v, turn_items, s->m, s->c, v->taps, at + v->made, w);
        break;
    }
}
