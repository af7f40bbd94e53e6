/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/tile_planes.c */
#include "common/kernels/cpu/nn/tile_planes.h"
#include "common/base/size.h"
#include "common/tensor/halves.h"

#include <string.h>

/* Elements that a stride, and a window, may span. */
enum { MOST_STRIDE = 64, MOST_REACH = 1 << 14 };

/* One axis: what a tap of it reads. */
typedef struct hop {
    int64_t tap, phase, by; /* `by` elements of the phase from the result's number */
} hop;

typedef struct axis {
    int64_t n_phases, n_grids, in_step, out_step, size, out_size;
    int64_t kernel, stride, dilation, before;
    bool back;
} axis;

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int64_t count(int64_t first, int64_t size, int64_t step)
{
    return first < size ? (size - first + step - 1) / step : 0;
}

static axis axis_of(const wf_conv *v, int i)
{
    const wf_window *w = &v->s.w;
    bool back = v->pass == WF_CONV_DATA;
    axis a = {.back = back,
              .kernel = w->kernel[i + 1],
              .stride = w->stride[i + 1],
              .dilation = w->dilation[i + 1],
              .before = w->before[i + 1],
              .size = back ? v->s.out[i + 1] : v->s.in[i + 1],
              .out_size = back ? v->s.in[i + 1] : v->s.out[i + 1]};

    a.in_step = back ? 1 : a.stride;
    a.out_step = back ? a.stride : 1;
    a.n_phases = a.in_step;
    a.n_grids = a.out_step;
    return a;
}

/* Where the results of grid g begin. */
static int64_t first_result(const axis *a, int64_t g)
{
    return a->back ? g + a->stride * -floor_div(g - a->before, a->stride) - a->before : 0;
}

/* What tap k of grid g reads; false: it adds nothing to it. */
static bool hop_of(const axis *a, int64_t g, int64_t k, hop *h)
{
    int64_t reach = k * a->dilation - a->before, begin;

    if (!a->back) {
        h->by = floor_div(reach, a->stride);
        h->phase = reach - h->by * a->stride;
    } else {
        if (k * a->dilation % a->stride != g)
            return false;
        begin = -floor_div(g - a->before, a->stride);
        h->by = begin - (k * a->dilation - g) / a->stride;
        h->phase = 0;
    }
    h->tap = k;
    return true;
}

/* The elements from one row, or image, to the next, and how far results read before and behind
 * their own place. */
static int64_t pitch_of(const axis *a, int64_t *before, int64_t *behind)
{
    int64_t elems = 0, least = INT64_MAX, results = 0, past = 0;

    *before = *behind = 0;
    for (int64_t p = 0; p < a->n_phases; p++) {
        elems = WF_MAX(elems, count(p, a->size, a->in_step));
        least = WF_MIN(least, count(p, a->size, a->in_step));
    }
    for (int64_t g = 0; g < a->n_grids; g++)
        results = WF_MAX(results, count(first_result(a, g), a->out_size, a->out_step));
    for (int64_t g = 0; g < a->n_grids; g++)
        for (int64_t k = 0; k < a->kernel; k++) {
            hop h;

            if (!hop_of(a, g, k, &h))
                continue;
            *before = WF_MAX(*before, -h.by);
            *behind = WF_MAX(*behind, h.by);
            past = WF_MAX(past, results + h.by - least);
        }
    return WF_MAX(results, elems + WF_MAX(*before, past));
}

static void add_taps(wf_tile_planes *p, const axis a[2], int64_t g0, int64_t g1)
{
    for (int64_t k0 = 0; k0 < a[0].kernel; k0++)
        for (int64_t k1 = 0; k1 < a[1].kernel; k1++) {
            hop h, w;

            if (hop_of(&a[0], g0, k0, &h) && hop_of(&a[1], g1, k1, &w))
                p->taps[p->n_taps++] = (wf_plane_tap){.tap = h.tap * a[1].kernel + w.tap,
                                                      .phase = h.phase * a[1].n_phases + w.phase,
                                                      .at = h.by * p->pitch + w.by};
        }
}

static void fill_in(wf_tile_planes *p, const axis a[2])
{
    int64_t before[2], behind[2];

    p->rows = pitch_of(&a[0], &before[0], &behind[0]);
    p->pitch = pitch_of(&a[1], &before[1], &behind[1]);
    p->lead = (before[0] * p->pitch + before[1] + WF_TILE_K - 1) / WF_TILE_K * WF_TILE_K;
    p->trail = behind[0] * p->pitch + behind[1];
    for (int64_t i = 0; i < p->n_phases; i++) {
        int64_t at[2] = {i / a[1].n_phases, i % a[1].n_phases};

        for (int k = 0; k < 2; k++) {
            p->phases[i].first[k] = at[k];
            p->phases[i].n[k] = count(at[k], a[k].size, a[k].in_step);
        }
    }
    for (int64_t i = 0; i < p->n_grids; i++) {
        wf_plane_grid *g = &p->grids[i];
        int64_t at[2] = {i / a[1].n_grids, i % a[1].n_grids};

        for (int k = 0; k < 2; k++) {
            g->results.first[k] = first_result(&a[k], at[k]);
            g->results.n[k] = count(g->results.first[k], a[k].out_size, a[k].out_step);
        }
        g->first_tap = p->n_taps;
        add_taps(p, a, at[0], at[1]);
        g->n_taps = p->n_taps - g->first_tap;
    }
}

/* Planes lie as the results do, and there is one tap. */
static void fold(wf_tile_planes *p, const wf_conv *v)
{
    p->channels = v->c * v->s.taps;
    p->pitch = v->s.out[2];
    p->rows = v->s.out[1];
    p->taps[p->n_taps++] = (wf_plane_tap){0};
    p->grids[0] = (wf_plane_grid){.results = {.n = {v->s.out[1], v->s.out[2]}}, .n_taps = 1};
}

bool wf_tile_planes_fit(const wf_conv *v)
{
    const wf_window *w = &v->s.w;
    bool fit = v->s.taps <= MOST_REACH;

    for (int i = 1; i < WF_WINDOW_AXES; i++)
        fit = fit && w->stride[i] <= MOST_STRIDE && w->dilation[i] <= MOST_REACH &&
              w->kernel[i] <= MOST_REACH && w->kernel[i] * w->dilation[i] <= MOST_REACH &&
              w->before[i] >= -MOST_REACH && w->before[i] <= MOST_REACH;
    return fit;
}

wf_status wf_tile_planes_make(wf_arena *arena, const wf_conv *v, bool folded, wf_tile_planes *out,
                              wf_err *err)
{
    axis a[2] = {axis_of(v, 0), axis_of(v, 1)};
    wf_tile_planes p = {.folded = folded,
                        .channels = v->pass == WF_CONV_DATA ? v->m : v->c,
                        .n_phases = folded ? 1 : a[0].n_phases * a[1].n_phases,
                        .n_grids = folded ? 1 : a[0].n_grids * a[1].n_grids,
                        .s = &v->s};
    size_t n;

    for (int i = 0; i < 2; i++) {
        p.size[i] = a[i].size;
        p.out_size[i] = a[i].out_size;
        p.in_step[i] = a[i].in_step;
        p.out_step[i] = a[i].out_step;
    }
    n = (size_t)(p.n_phases + p.n_grids) + (size_t)v->s.taps;
    p.phases = wf_arena_array(arena, (size_t)p.n_phases, sizeof *p.phases);
    p.grids = wf_arena_array(arena, (size_t)p.n_grids, sizeof *p.grids);
    p.taps = wf_arena_array(arena, (size_t)v->s.taps, sizeof *p.taps);
    if (!p.phases || !p.grids || !p.taps)
        return wf_fail_nomem(err, n * sizeof *p.taps);
    if (folded)
        fold(&p, v);
    else
        fill_in(&p, a);
    *out = p;
    return WF_OK;
}

int64_t wf_tile_planes_results(const wf_tile_planes *p, int64_t images)
{
    int64_t n = images * p->rows * p->pitch;

    return (n + WF_TILE_K - 1) / WF_TILE_K * WF_TILE_K;
}

int64_t wf_tile_planes_length(const wf_tile_planes *p, int64_t images)
{
    int64_t n = p->lead + wf_tile_planes_results(p, images) + p->trail;

    /* An odd number of lines: rows of a tile then lie in different sets of a cache. */
    return ((n + WF_TILE_K - 1) / WF_TILE_K | 1) * WF_TILE_K;
}

/* Extent of a padded image along axis i. */
static int64_t padded(const wf_spatial *s, int i)
{
    return (s->out[i] - 1) * s->w.stride[i] + (s->w.kernel[i] - 1) * s->w.dilation[i] + 1;
}

int64_t wf_tile_planes_padded(const wf_tile_planes *p)
{
    return p->folded ? p->channels / p->s->taps * padded(p->s, 1) * padded(p->s, 2) : 0;
}

static void copy_row(wf_factors x, int64_t n, float *to)
{
    if (x.is_bf16)
        wf_f32_of_bf16s(x.x, (size_t)n, to);
    else
        memcpy(to, x.x, (size_t)n * sizeof *to);
}

void wf_tile_planes_pad(const wf_tile_planes *p, wf_factors image, float *to)
{
    const wf_spatial *s = p->s;
    int64_t wide = padded(s, 2), rows = padded(s, 1), before = s->w.before[2];
    int64_t n = WF_MIN(s->in[2], wide - before);

    memset(to, 0, (size_t)wf_tile_planes_padded(p) * sizeof *to);
    for (int64_t c = 0; c < p->channels / s->taps; c++, to += rows * wide)
        for (int64_t h = 0; h < WF_MIN(s->in[1], rows - s->w.before[1]) && n > 0; h++)
            copy_row(wf_factors_at(image, (c * s->in[1] + h) * s->in[2]), n,
                     to + (h + s->w.before[1]) * wide + before);
}

/* Where the results' first row reads, of one tap of one channel. */
static int64_t folded_at(const wf_tile_planes *p, int64_t channel)
{
    const wf_spatial *s = p->s;
    int64_t kw = channel % s->taps % s->w.kernel[2], kh = channel % s->taps / s->w.kernel[2];

    return (channel / s->taps * padded(s, 1) + kh * s->w.dilation[1]) * padded(s, 2) +
           kw * s->w.dilation[2];
}

static void fill_folded(const wf_tile_planes *p, wf_factors image, int64_t channel, bool pair,
                        int64_t at, uint16_t *plane)
{
    int64_t row = p->s->w.stride[1] * padded(p->s, 2), step = p->s->w.stride[2];
    bool two = channel + 1 < p->channels;
    int64_t from = folded_at(p, channel), second = two ? folded_at(p, channel + 1) - from : 0;

    for (int64_t r = 0; r < p->rows; r++) {
        int64_t to = (at * p->rows + r) * p->pitch;

        if (pair)
            wf_tiles_pair(wf_factors_at(image, from + r * row), second, two, step, p->pitch,
                          plane + 2 * to);
        else
            wf_tiles_round(wf_factors_at(image, from + r * row), step, p->pitch, plane + to);
    }
}

void wf_tile_planes_fill(const wf_tile_planes *p, wf_factors image, int64_t channel, bool pair,
                         int64_t phase, int64_t at, uint16_t *plane)
{
    const wf_phase *f = &p->phases[phase];
    int64_t size = p->size[0] * p->size[1];
    wf_factors x = wf_factors_at(image, channel * size + f->first[0] * p->size[1] + f->first[1]);

    if (p->folded) {
        fill_folded(p, image, channel, pair, at, plane);
        return;
    }
    for (int64_t r = 0; r < f->n[0]; r++, x = wf_factors_at(x, p->in_step[0] * p->size[1])) {
        int64_t to = p->lead + (at * p->rows + r) * p->pitch;

        if (pair)
            wf_tiles_pair(x, size, channel + 1 < p->channels, p->in_step[1], f->n[1],
                          plane + 2 * to);
        else
            wf_tiles_round(x, p->in_step[1], f->n[1], plane + to);
    }
}
