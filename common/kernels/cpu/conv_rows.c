/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/conv_rows.c - convolutions in bfloat16 as one matrix product over all pixels
 * of a batch: for maps so small that oneDNN's convolutions, which go by rows of a map, leave most
 * of a tile empty.
 *
 * A row is a pixel: images [images in, c], maps [images out, m], columns [images out, taps c],
 * whose taps lie outside and channels inside, so that a tap is one copy. Weights are [m, taps c]
 * likewise.
 */
#include "common/base/size.h"
#include "common/kernels/cpu/bf16.h"
#include "common/kernels/cpu/conv.h"
#include "common/kernels/cpu/onednn.h"
#include "common/kernels/cpu/onednn_conv.h"
#include "common/kernels/cpu/product.h"

#include <string.h>

enum { ALIGN = 64, BLOCK = 16 };
/* Outputs along a map up to which this way is taken; oneDNN 2.6 fills its tiles along them, and its
 * gradients of weights are the worst at that (bench/models.py --bf16). */
enum { MOST = 4, MOST_FOR_WEIGHTS = 16 };
/* Gradients of weights up to LARGE bytes: groups of images with sums of their own, and the most
 * bytes of columns that a group makes at a time. How many groups there are is a matter of the
 * shape, so that sums do not depend on threads. Larger ones are one product over all pixels. */
enum { GROUPS = 8, LARGE = 4 << 20, COLUMNS = 2 << 20 };

typedef struct conv_rows {
    wf_onednn_conv_shape s;
    int64_t in, out, taps; /* pixels of an image and of a map; taps of a channel */
    wf_product_way *product;
    /* Where in the workspace: rows of images, maps and weights, rounded; columns, rounded, or their
     * gradients in f32; what is made, in rows. */
    size_t images, maps, weights, columns, made;
    /* Gradients of weights have their rooms once for each group, `room` bytes apart. */
    wf_onednn_product **of_group; /* [groups]; the product above is NULL then */
    int64_t groups, some;         /* images at a time */
    size_t room, scratch;
} conv_rows;

typedef struct job {
    const conv_rows *v;
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

/* The columns of one image, from its rows. */
static void image_columns(const conv_rows *v, const char *x, char *to)
{
    size_t row = (size_t)v->s.c * sizeof(uint16_t);

    for (int64_t o = 0; o < v->out; o++)
        for (int64_t k = 0; k < v->taps; k++, to += row) {
            int64_t at = pixel(&v->s, o, k);

            if (at < 0)
                memset(to, 0, row);
            else
                memcpy(to, x + (size_t)at * row, row);
        }
}

static void columns_of(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const conv_rows *v = j->v;
    size_t row = (size_t)v->s.c * sizeof(uint16_t);

    for (int64_t i = begin; i < end; i++)
        image_columns(v, (const char *)j->from + (size_t)(i * v->in) * row,
                      (char *)j->to + (size_t)(i * v->out * v->taps) * row);
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
    const conv_rows *v = j->v;

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

/* The most of 1 to `most` that divides n. */
static int64_t divisor(int64_t n, int64_t most)
{
    most = WF_MAX(most, (int64_t)1);
    while (n % most)
        most--;
    return most;
}

/* The product of a group adds what a few images give: maps [m, some out] times columns. */
static bool make_groups(wf_prep *prep, conv_rows *v)
{
    const wf_onednn_conv_shape *s = &v->s;
    int64_t wide = v->taps * s->c, image = v->out * wide * (int64_t)sizeof(uint16_t);
    wf_onednn_shape shape = {.bf16 = true, .m = s->m, .n = wide, .ldb = wide, .ldc = wide};

    v->groups = divisor(s->images, GROUPS);
    v->some = divisor(s->images / v->groups, COLUMNS / WF_MAX(image, (int64_t)1));
    if (v->groups < WF_MIN((int64_t)prep->threads, (int64_t)GROUPS))
        return false; /* a batch that divides badly */
    shape.k = shape.lda = v->some * v->out;
    shape.add = true;
    v->of_group = wf_arena_array(prep->arena, (size_t)v->groups, sizeof *v->of_group);
    for (int64_t g = 0; v->of_group && g < v->groups; g++) {
        v->of_group[g] = wf_onednn_product_new(&shape);
        if (!v->of_group[g])
            return false;
    }
    if (!v->of_group)
        return false;
    v->images = room(&v->room, v->some * v->in * s->c, sizeof(uint16_t));
    v->maps = room(&v->room, s->m * shape.k, sizeof(uint16_t));
    v->columns = room(&v->room, shape.k * wide, sizeof(uint16_t));
    v->scratch = room(&v->room, (int64_t)wf_onednn_product_workspace(v->of_group[0]), 1);
    v->made = (size_t)v->groups * v->room; /* [groups, m, taps c] */
    prep->workspace_bytes =
        v->made + (size_t)v->groups * wf_align_up((size_t)(s->m * wide) * sizeof(float), ALIGN);
    return true;
}

static wf_status make_product(wf_prep *prep, conv_rows *v, wf_err *err)
{
    const wf_onednn_conv_shape *s = &v->s;
    bool forward = s->pass == WF_CONV_FORWARD, data = s->pass == WF_CONV_DATA;
    int64_t rows = s->images * v->out, wide = v->taps * s->c;
    wf_product p = {.dtype = WF_F32, .alpha = 1, .trans_b = forward};
    size_t end;

    p.m = forward || data ? rows : s->m;
    p.n = forward ? s->m : wide;
    p.k = forward ? wide : data ? s->m : rows;
    WF_TRY(wf_product_prepare(prep, &p, WF_PRODUCT_ROUNDED, &v->product, err));
    end = wf_align_up(prep->workspace_bytes, ALIGN);
    v->images = room(&end, data ? 0 : s->images * v->in * s->c, sizeof(uint16_t));
    v->maps = room(&end, forward ? 0 : rows * s->m, sizeof(uint16_t));
    v->weights = room(&end, forward || data ? s->m * wide : 0, sizeof(uint16_t));
    v->columns = room(&end, rows * wide, data ? sizeof(float) : sizeof(uint16_t));
    v->made = room(&end,
                   forward ? rows * s->m
                   : data  ? s->images * v->in * s->c
                           : s->m * wide,
                   sizeof(float));
    prep->workspace_bytes = end;
    return WF_OK;
}

static void release(void *state)
{
    conv_rows *v = state;

    wf_product_release(v->product);
    for (int64_t g = 0; v->of_group && g < v->groups; g++)
        wf_onednn_product_free(v->of_group[g]);
}

static bool wants(const wf_conv *v)
{
    return v->bf16 && v->dtype == WF_F32 && v->groups == 1 && v->s.in[0] == 1 && v->s.out[0] == 1 &&
           v->s.w.kernel[0] == 1 && v->batch > 0 && v->s.in_size > 0 && v->s.out_size > 0 &&
           v->m > 0 && v->s.out[2] <= (v->pass == WF_CONV_WEIGHTS ? MOST_FOR_WEIGHTS : MOST);
}

static wf_status prepare(wf_prep *prep, const wf_conv *c, void **state, wf_err *err)
{
    conv_rows *v;
    bool there;

    if (!wants(c))
        return WF_OK;
    v = wf_arena_alloc(prep->arena, sizeof *v);
    if (!v)
        return wf_fail_nomem(err, sizeof *v);
    *v = (conv_rows){.s = wf_onednn_conv_shape_of(c, c->batch),
                     .in = c->s.in_size,
                     .out = c->s.out_size,
                     .taps = c->s.taps};
    if (c->pass == WF_CONV_WEIGHTS && c->m * v->taps * c->c * (int64_t)sizeof(float) <= LARGE) {
        there = make_groups(prep, v);
    } else {
        WF_TRY(make_product(prep, v, err));
        there = wf_product_is_bf16(v->product);
    }
    if (there) {
        *state = v;
    } else {
        release(v);
        prep->workspace_bytes = 0;
    }
    return WF_OK;
}

static void each(const wf_run *run, const conv_rows *v, wf_pool_fn *fn, int64_t items,
                 int64_t inner, int64_t outer, const void *from, void *to)
{
    job j = {v, from, to, inner, outer};

    wf_pool_for(run->pool, items, WF_GRAIN / (inner * outer + 1) + 1, fn, &j);
}

static void make_columns(const conv_rows *v, const wf_run *run, const float *x)
{
    char *at = run->workspace;

    each(run, v, round_items, v->s.images, v->in, v->s.c, x, at + v->images);
    each(run, v, columns_of, v->s.images, v->out, v->taps * v->s.c, at + v->images,
         at + v->columns);
}

typedef struct weights_job {
    const conv_rows *v;
    const float *x, *y;
    char *workspace;
    size_t sum; /* bytes of a group's sum */
} weights_job;

/* Images [from, from + some) into the group's sum. */
static void add_some(const weights_job *j, int64_t g, int64_t from)
{
    const conv_rows *v = j->v;
    const wf_onednn_conv_shape *s = &v->s;
    char *own = j->workspace + (size_t)g * v->room;
    uint16_t *images = (void *)(own + v->images), *maps = (void *)(own + v->maps);

    for (int64_t i = 0; i < v->some; i++) {
        const float *y = j->y + (from + i) * s->m * v->out;

        round_across(j->x + (from + i) * s->c * v->in, s->c, v->in, images + i * v->in * s->c);
        image_columns(v, (const char *)(images + i * v->in * s->c),
                      own + v->columns + (size_t)(i * v->out * v->taps * s->c) * sizeof(uint16_t));
        for (int64_t m = 0; m < s->m; m++)
            wf_round_to_bf16(y + m * v->out, maps + (m * v->some + i) * v->out, v->out);
    }
    wf_onednn_product_run(v->of_group[g], maps, own + v->columns, NULL,
                          (float *)(void *)(j->workspace + v->made + (size_t)g * j->sum),
                          own + v->scratch);
}

static void sum_groups(void *arg, int64_t begin, int64_t end)
{
    const weights_job *j = arg;
    const conv_rows *v = j->v;
    int64_t each = v->s.images / v->groups;

    for (int64_t g = begin; g < end; g++) {
        memset(j->workspace + v->made + (size_t)g * j->sum, 0, j->sum);
        for (int64_t i = 0; i < each; i += v->some)
            add_some(j, g, g * each + i);
    }
}

/* Elements [begin, end) of the first group's sum: those of the others are added in order. */
static void add_groups(void *arg, int64_t begin, int64_t end)
{
    const weights_job *j = arg;

    for (int64_t g = 1; g < j->v->groups; g++)
        add((const float *)(const void *)(j->workspace + j->v->made + (size_t)g * j->sum) + begin,
            (float *)(void *)(j->workspace + j->v->made) + begin, end - begin);
}

static void make_weights(const conv_rows *v, const wf_run *run, const float *x, const float *y,
                         float *w)
{
    int64_t wide = v->taps * v->s.c;
    weights_job j = {v, x, y, run->workspace,
                     wf_align_up((size_t)(v->s.m * wide) * sizeof(float), ALIGN)};

    wf_pool_for(run->pool, v->groups, 1, sum_groups, &j);
    wf_pool_for(run->pool, v->s.m * wide, WF_GRAIN, add_groups, &j);
    each(run, v, turn_items, v->s.m, v->s.c, v->taps, (char *)run->workspace + v->made, w);
}

static void go(const conv_rows *v, const wf_run *run, float *x, float *w, float *y)
{
    const wf_onednn_conv_shape *s = &v->s;
    char *at = run->workspace;

    if (v->of_group) {
        make_weights(v, run, x, y, w);
        return;
    }
    if (s->pass == WF_CONV_WEIGHTS) {
        make_columns(v, run, x);
        each(run, v, round_maps, s->m, v->out, s->images, y, at + v->maps);
        wf_product_go(v->product, run, at + v->maps, at + v->columns, NULL, at + v->made);
        each(run, v, turn_items, s->m, s->c, v->taps, at + v->made, w);
        return;
    }
    each(run, v, round_items, s->m, v->taps, s->c, w, at + v->weights);
    if (s->pass == WF_CONV_FORWARD) {
        make_columns(v, run, x);
        wf_product_go(v->product, run, at + v->columns, at + v->weights, NULL, at + v->made);
        each(run, v, turn_items, s->images, s->m, v->out, at + v->made, y);
        return;
    }
    each(run, v, round_items, s->images, v->out, s->m, y, at + v->maps);
    wf_product_go(v->product, run, at + v->maps, at + v->weights, NULL, at + v->columns);
    each(run, v, add_columns, s->images, v->out, v->taps * s->c, at + v->columns, at + v->made);
    each(run, v, turn_items, s->images, s->c, v->in, at + v->made, x);
}

static void run(const wf_conv *v, const wf_run *run, const wf_conv_tensors *t)
{
    go(v->state, run, (float *)(void *)t->x, (float *)(void *)t->w, (float *)(void *)t->y);
    for (int64_t i = 0; v->pass != WF_CONV_WEIGHTS && i < v->batch; i++)
        wf_conv_add_bias(v, t, i, 0);
}

const wf_conv_way wf_conv_by_rows = {"rows", .prepare = prepare, .run = run, .release = release};
