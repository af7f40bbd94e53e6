/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/conv_tiles.c - convolutions and their gradients of data in bfloat16,
 * without columns: a tile of B is 16 pairs of channels of 16 pixels that follow each other in
 * padded planes (tile_planes.h), A the weights of a tap, and the sums lie as the result does but
 * for the padding.
 *
 * Each thread takes some images at a time, so that their planes stay in its second cache.
 */
#include "common/base/size.h"
#include "common/kernels/cpu/nn/conv.h"
#include "common/kernels/cpu/nn/tile_planes.h"
#include "common/kernels/cpu/product/tiles.h"

#include <string.h>

/* Bytes of planes that a thread has at a time; results between two moves to their place; bytes of a
 * result from which it is written past the caches. */
#define PLANES_BYTES ((int64_t)3 << 18)
enum { WINDOW = 512 };
#define PAST_BYTES ((size_t)1 << 20)

typedef struct by_tiles {
    wf_tile_planes p;
    int64_t results;            /* maps, or channels, that are made */
    int64_t steps, pairs;       /* tiles along the channels; pairs of them with padding */
    int64_t images, parts;      /* at a time */
    int64_t length;             /* of a plane, in pairs */
    int64_t *a_at, *b_at;       /* [n_taps] */
    size_t part_at, part_bytes; /* behind the weights */
    size_t sums_at, padded_at;  /* in a part's, behind the planes */
    bool past;
} by_tiles;

typedef struct job {
    const wf_conv *v;
    const by_tiles *own;
    wf_conv_f32 f;
    char *workspace;
} job;

static int64_t panel_bytes(const by_tiles *own)
{
    return own->p.n_taps * own->steps * WF_TILE_BYTES;
}

/* Weights of 16 results each, tap by tap. */
static void pack_weights(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const wf_conv *v = j->v;
    const by_tiles *own = j->own;
    int64_t taps = own->p.folded ? 1 : v->s.taps, row = v->c * v->s.taps;
    bool data = v->pass == WF_CONV_DATA;

    for (int64_t i = begin; i < end; i++)
        for (int64_t t = 0; t < own->p.n_taps; t++) {
            char *to = j->workspace + i * panel_bytes(own) + t * own->steps * WF_TILE_BYTES;
            wf_strided from = {
                {j->f.w + i * WF_TILE * (data ? v->s.taps : row) + own->p.taps[t].tap, false},
                row,
                taps};

            wf_tiles_pack(from, data ? WF_ACROSS_K : WF_ALONG_K, false,
                          WF_MIN(own->results - i * WF_TILE, (int64_t)WF_TILE), own->p.channels, to,
                          0);
        }
}

/* Images [first, first + n) of what is read, into planes. */
static void fill_planes(const job *j, int64_t first, int64_t n, char *part)
{
    const by_tiles *own = j->own;
    int64_t size = own->p.size[0] * own->p.size[1];
    int64_t channels = own->p.folded ? j->v->c : own->p.channels;

    for (int64_t i = 0; i < n; i++) {
        wf_factors image = wf_factors_at(j->f.from, (first + i) * channels * size);

        if (own->p.folded) {
            float *padded = (float *)(void *)(part + own->padded_at);

            wf_tile_planes_pad(&own->p, image, padded);
            image = (wf_factors){padded, false};
        }
        for (int64_t c = 0; c < own->p.channels; c += 2)
            for (int64_t f = 0; f < own->p.n_phases; f++)
                wf_tile_planes_fill(&own->p, image, c, true, f, i,
                                    (uint16_t *)(void *)part +
                                        2 * (f * own->pairs + c / 2) * own->length);
    }
}

/* Results [from, to) of a grid: map `map` has them at `sums`; images begin with `first`. */
static void put(const job *j, const wf_plane_grid *g, int64_t map, int64_t first, int64_t from,
                int64_t to, const float *sums)
{
    const wf_tile_planes *p = &j->own->p;
    const wf_phase *f = &g->results;
    float bias = j->f.bias ? j->f.bias[map] : 0;

    for (int64_t r = from / p->pitch; r * p->pitch < to; r++) {
        int64_t at = r * p->pitch, lo = WF_MAX(at, from), hi = WF_MIN(at + f->n[1], to);
        int64_t row = f->first[0] + r % p->rows * p->out_step[0];
        int64_t plane = (first + r / p->rows) * j->own->results + map;

        if (r % p->rows >= f->n[0] || lo >= hi)
            continue;
        wf_tiles_put(sums + (lo - from), bias, hi - lo, j->own->past,
                     j->f.to + (plane * p->out_size[0] + row) * p->out_size[1] + f->first[1] +
                         (lo - at) * p->out_step[1],
                     p->out_step[1]);
    }
}

/* Results [from, to) of two tiles of maps from `tile` on, into sums [32, WINDOW]. */
static void multiply(const job *j, const wf_plane_grid *g, int64_t tile, int64_t from, int64_t to,
                     const char *part, float *sums)
{
    const by_tiles *own = j->own;
    int64_t row = own->length * 2 * (int64_t)sizeof(uint16_t);
    wf_tiles t = {.a = j->workspace + tile * panel_bytes(own),
                  .a_row = 64,
                  .a_next = panel_bytes(own),
                  .a_step = WF_TILE_BYTES,
                  .b_row = row,
                  .b_next = 64,
                  .b_step = WF_TILE * row,
                  .steps = own->steps,
                  .hops = g->n_taps,
                  .a_at = own->a_at + g->first_tap,
                  .b_at = own->b_at + g->first_tap,
                  .rows =
                      (int)WF_MIN(wf_ceil_div(own->results - tile * WF_TILE, WF_TILE), INT64_C(2)),
                  .c_row = WINDOW};

    for (int64_t i = from; i < to; i += WF_TILE_BLOCK) {
        t.b = part + (own->p.lead + i) * 2 * (int64_t)sizeof(uint16_t);
        t.columns = to - i > WF_TILE ? 2 : 1;
        t.c = sums + (i - from);
        wf_tiles_multiply(&t);
    }
}

static void make_results(const job *j, int64_t first, int64_t n, char *part)
{
    const by_tiles *own = j->own;
    float *sums = (float *)(void *)(part + own->sums_at);
    int64_t all = n * own->p.rows * own->p.pitch;

    for (int64_t tile = 0; tile * WF_TILE < own->results; tile += 2)
        for (int64_t g = 0; g < own->p.n_grids; g++)
            for (int64_t from = 0; from < all; from += WINDOW) {
                int64_t to = WF_MIN(from + WINDOW, all), map = tile * WF_TILE;

                multiply(j, &own->p.grids[g], tile, from, to, part, sums);
                for (int64_t m = map; m < WF_MIN(map + WF_TILE_BLOCK, own->results); m++)
                    put(j, &own->p.grids[g], m, first, from, to, sums + (m - map) * WINDOW);
            }
}

static void part_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const by_tiles *own = j->own;

    wf_tiles_begin();
    for (int64_t p = begin; p < end; p++) {
        char *part = j->workspace + own->part_at + (size_t)p * own->part_bytes;
        int64_t last = wf_conv_part(j->v->batch, own->parts, p + 1);

        memset(part, 0, own->sums_at); /* what is not filled stays 0 */
        for (int64_t i = wf_conv_part(j->v->batch, own->parts, p); i < last; i += own->images) {
            int64_t n = WF_MIN(own->images, last - i);

            fill_planes(j, i, n, part);
            make_results(j, i, n, part);
        }
    }
    wf_tiles_end();
}

static void run(const wf_conv *v, const wf_run *run, const wf_conv_tensors *t)
{
    const by_tiles *own = v->state;
    job j = {v, own, wf_conv_f32_of(v, t), run->workspace};

    wf_pool_for(run->pool, wf_ceil_div(own->results, WF_TILE), 1, pack_weights, &j);
    wf_pool_for(run->pool, own->parts, 1, part_range, &j);
}

/* Fewer channels than these would mostly be multiplied as zeros: they are folded, if their taps can
 * be. Results that fill less than a quarter of the planes are left to others. */
enum { CHANNELS = 16, LEAST_FILLED = 4 };

static bool wants(const wf_conv *v)
{
    bool data = v->pass == WF_CONV_DATA;

    return v->bf16 && wf_tile_planes_fit(v) && v->groups == 1 && v->s.in[0] == 1 &&
           v->s.out[0] == 1 && v->s.w.kernel[0] == 1 && v->pass != WF_CONV_WEIGHTS &&
           v->batch > 0 && v->s.in_size > 0 && v->s.out_size > 0 &&
           (data ? v->c : v->m) >= CHANNELS && (data ? v->m : v->c * v->s.taps) >= CHANNELS;
}

static bool is_filled(const by_tiles *own)
{
    return own->p.rows * own->p.pitch * own->p.n_grids <=
           LEAST_FILLED * own->p.out_size[0] * own->p.out_size[1];
}

static wf_status make_places(wf_arena *arena, by_tiles *own, wf_err *err)
{
    int64_t n = own->p.n_taps;

    own->a_at = wf_arena_array(arena, (size_t)n, sizeof *own->a_at);
    own->b_at = wf_arena_array(arena, (size_t)n, sizeof *own->b_at);
    if (!own->a_at || !own->b_at)
        return wf_fail_nomem(err, (size_t)n * sizeof *own->a_at);
    for (int64_t i = 0; i < n; i++) {
        const wf_plane_tap *t = &own->p.taps[i];

        own->a_at[i] = i * own->steps * WF_TILE_BYTES;
        own->b_at[i] =
            (t->phase * own->pairs * own->length + t->at) * 2 * (int64_t)sizeof(uint16_t);
    }
    return WF_OK;
}

static wf_status prepare(wf_prep *prep, const wf_conv *v, void **state, wf_err *err)
{
    bool data = v->pass == WF_CONV_DATA;
    by_tiles *own;
    int64_t row;

    if (!wants(v))
        return WF_OK;
    own = wf_arena_alloc(prep->arena, sizeof *own);
    if (!own)
        return wf_fail_nomem(err, sizeof *own);
    WF_TRY(wf_tile_planes_make(prep->arena, v, !data && v->c < CHANNELS, &own->p, err));
    if (!is_filled(own))
        return WF_OK;
    own->results = data ? v->c : v->m;
    own->steps = wf_ceil_div(own->p.channels, WF_TILE_K);
    own->pairs = own->steps * WF_TILE;
    own->parts = WF_MIN(v->threads, v->batch);
    row = own->p.n_phases * own->pairs * 2 * (int64_t)sizeof(uint16_t);
    own->images = wf_ceil_div(v->batch, own->parts);
    while (own->images > 1 && row * wf_tile_planes_length(&own->p, own->images) > PLANES_BYTES)
        own->images = wf_ceil_div(own->images, 2);
    own->length = wf_tile_planes_length(&own->p, own->images);
    own->past = (size_t)(v->batch * own->results * own->p.out_size[0] * own->p.out_size[1]) *
                    sizeof(float) >=
                PAST_BYTES;
    WF_TRY(make_places(prep->arena, own, err));
    own->part_at = (size_t)(wf_ceil_div(own->results, WF_TILE) * panel_bytes(own));
    own->sums_at = (size_t)(row * own->length);
    own->padded_at = own->sums_at + sizeof(float) * WF_TILE_BLOCK * WINDOW;
    own->part_bytes =
        own->padded_at + wf_align_up(sizeof(float) * (size_t)wf_tile_planes_padded(&own->p), 64);
    prep->workspace_bytes = own->part_at + (size_t)own->parts * own->part_bytes;
    *state = own;
    return WF_OK;
}

const wf_conv_way wf_conv_by_tiles = {"tiles", true, .prepare = prepare, .run = run};
