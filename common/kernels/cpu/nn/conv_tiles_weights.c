/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/conv_tiles_weights.c - gradients of a convolution's weights in bfloat16:
 * for each tap a product over the pixels of channels, a row of padded planes each (tile_planes.h)
 * and moved by the tap, and of the maps' gradients, which are zeros where the planes are padding.
 *
 * All threads share the planes of some images at a time and split the sums [taps, c, m], which are
 * added to from chunk to chunk; what a chunk holds is a matter of the shape.
 */
#include "common/base/size.h"
#include "common/kernels/cpu/nn/conv.h"
#include "common/kernels/cpu/nn/conv_sums.h"
#include "common/kernels/cpu/nn/tile_planes.h"
#include "common/kernels/cpu/product/tiles.h"

#include <string.h>

/* Bytes of planes at a time: half of a second cache, or as many as the sums, which every chunk
 * reads and writes; tiles along the pixels that are multiplied for all taps while they are in the
 * first. */
#define CHUNK_BYTES ((int64_t)1 << 20)
enum { ALONG = 8, CHANNELS = 16, LEAST_FILLED = 4 };

typedef struct by_tiles {
    wf_tile_planes p;
    wf_conv_sums shape;
    int64_t c_tiles, m_tiles, images;
    int64_t x_length, y_length;         /* elements of a plane */
    int64_t groups;                     /* of taps that threads may split */
    size_t sums, x, y, y_tiles, padded; /* where they lie */
} by_tiles;

typedef struct job {
    const wf_conv *v;
    const by_tiles *own;
    wf_factors x, y;
    float *w;
    char *workspace;
    int64_t first, n; /* images of the chunk */
} job;

static int64_t pixel_tiles(const by_tiles *own, int64_t images)
{
    return wf_tile_planes_results(&own->p, images) / WF_TILE_K;
}

/* Where image i of the chunk lies with its padding. */
static float *padded_image(const job *j, int64_t i)
{
    return (float *)(void *)(j->workspace + j->own->padded) + i * wf_tile_planes_padded(&j->own->p);
}

static void pad(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    for (int64_t i = begin; i < end; i++)
        wf_tile_planes_pad(&j->own->p,
                           wf_factors_at(j->x, (j->first + i) * j->v->c * j->v->s.in_size),
                           padded_image(j, i));
}

static void fill_channel(const job *j, int64_t c)
{
    const by_tiles *own = j->own;
    int64_t size = own->p.size[0] * own->p.size[1];
    uint16_t *planes = (uint16_t *)(void *)(j->workspace + own->x);

    for (int64_t f = 0; f < own->p.n_phases; f++) {
        uint16_t *plane = planes + (f * own->c_tiles * WF_TILE + c) * own->x_length;

        if (j->first == 0)
            memset(plane, 0, (size_t)own->x_length * sizeof *plane);
        for (int64_t i = 0; i < j->n && c < own->p.channels; i++)
            wf_tile_planes_fill(&own->p,
                                own->p.folded
                                    ? (wf_factors){padded_image(j, i), false}
                                    : wf_factors_at(j->x, (j->first + i) * j->v->c * size),
                                c, false, f, i, plane);
    }
}

/* 16 maps into rows that lie as the results do, and those into tiles. */
static void fill_maps(const job *j, int64_t tile)
{
    const by_tiles *own = j->own;
    const wf_conv *v = j->v;
    const wf_tile_planes *p = &own->p;
    uint16_t *rows = (uint16_t *)(void *)(j->workspace + own->y) + tile * WF_TILE * own->y_length;

    if (j->first == 0 || j->n < own->images)
        memset(rows, 0, (size_t)(WF_TILE * own->y_length) * sizeof *rows);
    for (int64_t m = tile * WF_TILE; m < WF_MIN((tile + 1) * WF_TILE, v->m); m++)
        for (int64_t i = 0; i < j->n; i++)
            for (int64_t r = 0; r < p->out_size[0]; r++)
                wf_tiles_round(
                    wf_factors_at(j->y, (((j->first + i) * v->m + m) * p->out_size[0] + r) *
                                            p->out_size[1]),
                    1, p->out_size[1],
                    rows + m % WF_TILE * own->y_length + (i * p->rows + r) * p->pitch);
    wf_tiles_turn(rows, own->y_length * (int64_t)sizeof *rows, pixel_tiles(own, j->n),
                  j->workspace + own->y_tiles +
                      tile * pixel_tiles(own, own->images) * WF_TILE_BYTES);
}

/* Tiles of maps first, then channels. */
static void fill(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    int64_t maps = j->own->m_tiles;

    for (int64_t i = begin; i < end; i++)
        if (i < maps)
            fill_maps(j, i);
        else
            fill_channel(j, i - maps);
}

/* Tap t of the block at (c, m), of ALONG tiles along the pixels. */
static void multiply(const void *arg, int64_t t, int64_t c, int64_t m, int64_t piece)
{
    const job *j = arg;
    const by_tiles *own = j->own;
    const wf_plane_tap *tap = &own->p.taps[t];
    int64_t row = own->x_length * (int64_t)sizeof(uint16_t);
    int64_t next = pixel_tiles(own, own->images) * WF_TILE_BYTES, from = piece * ALONG;
    float *sums =
        wf_conv_sums_at(&own->shape, j->workspace + own->sums, t, c * WF_TILE, m * WF_TILE);
    const char *x = j->workspace + own->x;

    x += (tap->phase * own->c_tiles + c) * WF_TILE * row;
    x += (own->p.lead + tap->at + from * WF_TILE_K) * (int64_t)sizeof(uint16_t);
    wf_tiles_multiply(
        &(wf_tiles){.a = x,
                    .a_row = row,
                    .a_next = WF_TILE * row,
                    .a_step = WF_TILE_K * sizeof(uint16_t),
                    .b = j->workspace + own->y_tiles + m * next + from * WF_TILE_BYTES,
                    .b_row = 64,
                    .b_next = next,
                    .b_step = WF_TILE_BYTES,
                    .steps = WF_MIN(pixel_tiles(own, j->n) - from, (int64_t)ALONG),
                    .hops = 1,
                    .rows = (int)WF_MIN(own->c_tiles - c, INT64_C(2)),
                    .columns = (int)WF_MIN(own->m_tiles - m, INT64_C(2)),
                    .start = j->first || from ? sums : NULL,
                    .start_row = WF_TILE_BLOCK,
                    .c = sums,
                    .c_row = WF_TILE_BLOCK});
}

static void run(const wf_conv *v, const wf_run *run, const wf_conv_tensors *t)
{
    const by_tiles *own = v->state;
    job j = {.v = v,
             .own = own,
             .x = wf_conv_x(t),
             .y = wf_conv_y(t),
             .w = (float *)(void *)t->w,
             .workspace = run->workspace};
    int64_t items = own->m_tiles + own->c_tiles * WF_TILE;

    for (; j.first < v->batch; j.first += own->images) {
        j.n = WF_MIN(own->images, v->batch - j.first);
        if (own->p.folded)
            wf_pool_for(run->pool, j.n, 1, pad, &j);
        wf_pool_for(run->pool, items, 1, fill, &j);
        wf_conv_sums_multiply(&own->shape, run->pool, own->groups,
                              wf_ceil_div(pixel_tiles(own, j.n), (int64_t)ALONG), multiply, &j);
    }
    wf_conv_sums_unpack(&own->shape, run->pool, j.workspace + own->sums, j.w);
}

static bool wants(const wf_conv *v)
{
    return v->bf16 && wf_tile_planes_fit(v) && v->groups == 1 && v->s.in[0] == 1 &&
           v->s.out[0] == 1 && v->s.w.kernel[0] == 1 && v->pass == WF_CONV_WEIGHTS &&
           v->batch > 0 && v->s.in_size > 0 && v->s.out_size > 0 && v->m >= CHANNELS &&
           v->c * v->s.taps >= CHANNELS;
}

static int64_t chunk_bytes(const by_tiles *own, int64_t images)
{
    return (own->p.n_phases * own->c_tiles * WF_TILE * wf_tile_planes_length(&own->p, images) +
            own->m_tiles * WF_TILE * wf_tile_planes_results(&own->p, images)) *
           (int64_t)sizeof(uint16_t);
}

static wf_status prepare(wf_prep *prep, const wf_conv *v, void **state, wf_err *err)
{
    by_tiles *own;
    int64_t sums, elem = sizeof(uint16_t);
    size_t end = 0;

    if (!wants(v))
        return WF_OK;
    own = wf_arena_alloc(prep->arena, sizeof *own);
    if (!own)
        return wf_fail_nomem(err, sizeof *own);
    WF_TRY(wf_tile_planes_make(prep->arena, v, v->c < CHANNELS, &own->p, err));
    if (own->p.rows * own->p.pitch > LEAST_FILLED * v->s.out_size)
        return WF_OK;
    own->c_tiles = wf_ceil_div(own->p.channels, WF_TILE);
    own->m_tiles = wf_ceil_div(v->m, WF_TILE);
    own->shape = (wf_conv_sums){v->m, own->p.n_taps, own->p.channels, own->c_tiles * WF_TILE};
    sums = wf_conv_sums_bytes(&own->shape);
    own->images = v->batch;
    while (own->images > 1 && chunk_bytes(own, own->images) > WF_MAX(CHUNK_BYTES, sums))
        own->images = wf_ceil_div(own->images, 2);
    own->groups = wf_conv_sums_groups(&own->shape, v->threads);
    own->x_length = wf_tile_planes_length(&own->p, own->images);
    own->y_length = wf_tile_planes_results(&own->p, own->images);
    own->sums = wf_conv_room(&end, sums);
    own->x = wf_conv_room(&end, own->p.n_phases * own->c_tiles * WF_TILE * own->x_length * elem);
    own->y = wf_conv_room(&end, own->m_tiles * WF_TILE * own->y_length * elem);
    own->y_tiles = wf_conv_room(&end, own->m_tiles * WF_TILE * own->y_length * elem);
    own->padded =
        wf_conv_room(&end, own->images * wf_tile_planes_padded(&own->p) * (int64_t)sizeof(float));
    prep->workspace_bytes = end;
    *state = own;
    return WF_OK;
}

const wf_conv_way wf_conv_weights_by_tiles = {"tiles", true, .prepare = prepare, .run = run};
