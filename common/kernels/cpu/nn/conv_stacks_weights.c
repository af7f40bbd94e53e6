/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/conv_stacks_weights.c - gradients of a convolution's weights in bfloat16,
 * of small maps: along k a tile has one pixel of 32 images, and a tap's list is the pairs of pixels
 * that it joins. Threads share the stacks of some images at a time and split the sums [taps, c, m].
 */
#include "common/base/size.h"
#include "common/kernels/cpu/nn/conv.h"
#include "common/kernels/cpu/nn/conv_stacks.h"
#include "common/kernels/cpu/nn/conv_sums.h"
#include "common/kernels/cpu/product/tiles.h"

/* Pixels of maps that are multiplied for all taps while they are in the first cache; bytes of
 * stacks at a time: as many as the sums, which every chunk reads and writes, or this. */
enum { STACK = WF_TILE_K, PIXELS = 8 };
#define CHUNK_BYTES ((int64_t)1 << 20)

typedef struct by_stacks {
    wf_stack_hops hops;
    wf_conv_sums shape;
    int64_t c_tiles, m_tiles;
    int64_t row;              /* bytes from one channel to the next */
    int64_t stacks, chunk;    /* of the batch, at a time */
    int64_t groups;           /* of taps that threads may split */
    size_t sums, x, y;        /* where they lie */
    int64_t x_bytes, y_bytes; /* of one stack */
} by_stacks;

typedef struct job {
    const wf_conv *v;
    const by_stacks *own;
    wf_factors x, y;
    float *w;
    char *workspace;
    int64_t first, n; /* stacks of the chunk */
} job;

/* A channel of the images of stack i. */
static void stack_channel(const job *j, int64_t i, int64_t c)
{
    const by_stacks *own = j->own;
    int64_t size = own->hops.n_from, image = j->v->c * size, first = (j->first + i) * STACK;
    int64_t n = c < j->v->c ? j->v->batch - first : 0;

    wf_tiles_stack(wf_factors_at(j->x, first * image + c * size), image, 2 * image, (n + 1) / 2,
                   n / 2, size, j->workspace + own->x + i * own->x_bytes + c * own->row, 64);
}

/* 16 maps of the images of stack i: tiles of B, pixel by pixel. */
static void stack_maps(const job *j, int64_t i, int64_t tile)
{
    const by_stacks *own = j->own;
    const wf_conv *v = j->v;
    int64_t size = own->hops.n_to, image = v->m * size, maps = v->m - tile * WF_TILE;
    char *to = j->workspace + own->y + i * own->y_bytes + tile * size * WF_TILE_BYTES;

    for (int64_t p = 0; p < WF_TILE; p++) {
        int64_t at = (j->first + i) * STACK + 2 * p;

        wf_tiles_stack(wf_factors_at(j->y, at * image + tile * WF_TILE * size), image, size,
                       at < v->batch ? maps : 0, at + 1 < v->batch ? maps : 0, size, to + p * 64,
                       WF_TILE_BYTES);
    }
}

/* Tiles of maps first, then channels. */
static void stack(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    int64_t maps = j->own->m_tiles;

    for (int64_t k = begin; k < end; k++)
        for (int64_t i = 0; i < j->n; i++)
            if (k < maps)
                stack_maps(j, i, k);
            else
                stack_channel(j, i, k - maps);
}

/* Tap t of the block at (c, m), of the maps' pixels in list `piece`. */
static void multiply(const void *arg, int64_t t, int64_t c, int64_t m, int64_t piece)
{
    const job *j = arg;
    const by_stacks *own = j->own;
    int64_t list = piece * j->v->s.taps + t;
    int64_t at = own->hops.begin[list], next = own->hops.n_to * WF_TILE_BYTES;
    float *sums =
        wf_conv_sums_at(&own->shape, j->workspace + own->sums, t, c * WF_TILE, m * WF_TILE);

    wf_tiles_multiply(&(wf_tiles){.a = j->workspace + own->x + c * WF_TILE * own->row,
                                  .a_row = own->row,
                                  .a_next = WF_TILE * own->row,
                                  .a_step = own->x_bytes,
                                  .a_at = own->hops.a_at + at,
                                  .b = j->workspace + own->y + m * next,
                                  .b_row = 64,
                                  .b_next = next,
                                  .b_step = own->y_bytes,
                                  .b_at = own->hops.b_at + at,
                                  .steps = j->n,
                                  .hops = own->hops.begin[list + 1] - at,
                                  .rows = (int)WF_MIN(own->c_tiles - c, INT64_C(2)),
                                  .columns = (int)WF_MIN(own->m_tiles - m, INT64_C(2)),
                                  .start = j->first || piece ? sums : NULL,
                                  .start_row = WF_TILE_BLOCK,
                                  .c = sums,
                                  .c_row = WF_TILE_BLOCK});
}

static void run(const wf_conv *v, const wf_run *run, const wf_conv_tensors *t)
{
    const by_stacks *own = v->state;
    job j = {.v = v,
             .own = own,
             .x = wf_conv_x(t),
             .y = wf_conv_y(t),
             .w = (float *)(void *)t->w,
             .workspace = run->workspace};

    for (; j.first < own->stacks; j.first += own->chunk) {
        j.n = WF_MIN(own->chunk, own->stacks - j.first);
        wf_pool_for(run->pool, own->m_tiles + own->c_tiles * WF_TILE, 1, stack, &j);
        wf_conv_sums_multiply(&own->shape, run->pool, own->groups,
                              wf_ceil_div(own->hops.n_to, PIXELS), multiply, &j);
    }
    wf_conv_sums_unpack(&own->shape, run->pool, j.workspace + own->sums, j.w);
}

static wf_status prepare(wf_prep *prep, const wf_conv *v, void **state, wf_err *err)
{
    by_stacks *own;
    int64_t sums;
    size_t end = 0;

    if (v->pass != WF_CONV_WEIGHTS || !wf_stack_wants(v))
        return WF_OK;
    own = wf_arena_alloc(prep->arena, sizeof *own);
    if (!own)
        return wf_fail_nomem(err, sizeof *own);
    WF_TRY(wf_stack_hops_by_tap(prep->arena, v, PIXELS, 64, WF_TILE_BYTES, &own->hops, err));
    own->c_tiles = wf_ceil_div(v->c, WF_TILE);
    own->m_tiles = wf_ceil_div(v->m, WF_TILE);
    /* An odd number of lines: rows of a tile then lie in different sets of a cache. */
    own->row = (own->hops.n_from | 1) * 64;
    own->x_bytes = own->c_tiles * WF_TILE * own->row;
    own->y_bytes = own->m_tiles * own->hops.n_to * WF_TILE_BYTES;
    own->shape = (wf_conv_sums){v->m, v->s.taps, v->c, own->c_tiles * WF_TILE};
    sums = wf_conv_sums_bytes(&own->shape);
    own->stacks = wf_ceil_div(v->batch, STACK);
    own->chunk = WF_MAX(sums, CHUNK_BYTES) / (own->x_bytes + own->y_bytes);
    own->chunk = WF_MIN(WF_MAX(own->chunk, INT64_C(1)), own->stacks);
    own->groups = wf_conv_sums_groups(&own->shape, v->threads);
    own->sums = wf_conv_room(&end, sums);
    own->x = wf_conv_room(&end, own->chunk * own->x_bytes);
    own->y = wf_conv_room(&end, own->chunk * own->y_bytes);
    prep->workspace_bytes = end;
    *state = own;
    return WF_OK;
}

const wf_conv_way wf_conv_weights_by_stacks = {"stacks", true, .prepare = prepare, .run = run};
