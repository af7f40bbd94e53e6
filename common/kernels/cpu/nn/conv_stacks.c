/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/conv_stacks.c - convolutions and their gradients of data in bfloat16, of
 * maps so small that padding would be a good part of what is multiplied: a tile's columns are one
 * pixel of 16 images. Each pixel of the result has its own list of taps, without those that lie
 * outside.
 *
 * Each thread takes two such stacks of images at a time. Sums have the order that conv_tiles.c
 * gives them.
 */
#include "common/kernels/cpu/nn/conv_stacks.h"
#include "common/base/size.h"
#include "common/kernels/cpu/nn/conv.h"
#include "common/kernels/cpu/product/tiles.h"

/* Images of a stack; pixels of a result between two moves to their place. */
enum { STACK = WF_TILE_BLOCK, PIXELS = 16 };
/* Bytes of a stack that a second cache may hold beside the weights of 32 results. */
#define STACK_BYTES ((int64_t)5 << 18)

typedef struct by_stacks {
    wf_stack_hops hops;
    int64_t channels, results; /* read and made */
    int64_t steps, taps;
    int64_t row;    /* bytes from one pair of channels to the next */
    int64_t stacks; /* of the batch */
    int64_t parts;
    size_t part_at, part_bytes, sums_at;
} by_stacks;

typedef struct job {
    const wf_conv *v;
    const by_stacks *own;
    wf_conv_f32 f;
    char *workspace;
} job;

static int64_t panel_bytes(const by_stacks *own)
{
    return own->taps * own->steps * WF_TILE_BYTES;
}

/* Weights of 16 results each, tap by tap. */
static void pack_weights(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const by_stacks *own = j->own;
    int64_t row = j->v->c * own->taps;
    bool data = j->v->pass == WF_CONV_DATA;

    for (int64_t i = begin; i < end; i++)
        for (int64_t t = 0; t < own->taps; t++) {
            wf_strided from = {
                {j->f.w + i * WF_TILE * (data ? own->taps : row) + t, false}, row, own->taps};

            wf_tiles_pack(from, data ? WF_ACROSS_K : WF_ALONG_K, false,
                          WF_MIN(own->results - i * WF_TILE, (int64_t)WF_TILE), own->channels,
                          j->workspace + i * panel_bytes(own) + t * own->steps * WF_TILE_BYTES, 0);
        }
}

/* Images [first, first + n) of what is read, pair of channels by pair. */
static void stack(const job *j, int64_t first, int64_t n, char *part)
{
    const by_stacks *own = j->own;
    int64_t size = own->hops.n_from, image = own->channels * size;

    for (int64_t c = 0; c < 2 * WF_TILE * own->steps; c += 2)
        for (int64_t i = 0; i < STACK; i += WF_TILE)
            wf_tiles_stack(wf_factors_at(j->f.from, (first + i) * image + c * size), size, image,
                           c < own->channels ? n - i : 0, c + 1 < own->channels ? n - i : 0, size,
                           part + c / 2 * own->row + i * 4, STACK * 4);
}

/* Pixels [from, to) of the results of two tiles from `tile` on, into sums [32, PIXELS, STACK]. */
static void multiply(const job *j, int64_t tile, int64_t from, int64_t to, const char *part,
                     int64_t n, float *sums)
{
    const by_stacks *own = j->own;
    wf_tiles t = {.a = j->workspace + tile * panel_bytes(own),
                  .b = part,
                  .a_row = 64,
                  .a_next = panel_bytes(own),
                  .a_step = WF_TILE_BYTES,
                  .b_row = own->row,
                  .b_next = 64,
                  .b_step = WF_TILE * own->row,
                  .steps = own->steps,
                  .rows =
                      (int)WF_MIN(wf_ceil_div(own->results - tile * WF_TILE, WF_TILE), INT64_C(2)),
                  .columns = n > WF_TILE ? 2 : 1,
                  .c_row = PIXELS * STACK};

    for (int64_t p = from; p < to; p++) {
        int64_t at = own->hops.begin[p];

        t.hops = own->hops.begin[p + 1] - at;
        t.a_at = own->hops.a_at + at;
        t.b_at = own->hops.b_at + at;
        t.c = sums + (p - from) * STACK;
        wf_tiles_multiply(&t);
    }
}

static void make_results(const job *j, int64_t first, int64_t n, char *part)
{
    const by_stacks *own = j->own;
    float *sums = (float *)(void *)(part + own->sums_at);
    int64_t size = own->hops.n_to;

    for (int64_t tile = 0; tile * WF_TILE < own->results; tile += 2)
        for (int64_t p = 0; p < size; p += PIXELS) {
            int64_t map = tile * WF_TILE, pixels = WF_MIN(size - p, (int64_t)PIXELS);

            multiply(j, tile, p, p + pixels, part, n, sums);
            for (int64_t m = map; m < WF_MIN(map + WF_TILE_BLOCK, own->results); m++)
                for (int64_t i = 0; i < n; i += WF_TILE)
                    wf_tiles_unstack(sums + (m - map) * PIXELS * STACK + i, STACK, pixels, n - i,
                                     j->f.bias ? j->f.bias[m] : 0,
                                     j->f.to + ((first + i) * own->results + m) * size + p,
                                     own->results * size);
        }
}

static void part_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const by_stacks *own = j->own;

    wf_tiles_begin();
    for (int64_t p = begin; p < end; p++) {
        char *part = j->workspace + own->part_at + (size_t)p * own->part_bytes;

        for (int64_t i = wf_conv_part(own->stacks, own->parts, p);
             i < wf_conv_part(own->stacks, own->parts, p + 1); i++) {
            int64_t n = WF_MIN(j->v->batch - i * STACK, (int64_t)STACK);

            stack(j, i * STACK, n, part);
            make_results(j, i * STACK, n, part);
        }
    }
    wf_tiles_end();
}

static void run(const wf_conv *v, const wf_run *run, const wf_conv_tensors *t)
{
    const by_stacks *own = v->state;
    job j = {v, own, wf_conv_f32_of(v, t), run->workspace};

    wf_pool_for(run->pool, wf_ceil_div(own->results, WF_TILE), 1, pack_weights, &j);
    wf_pool_for(run->pool, own->parts, 1, part_range, &j);
}

static wf_status prepare(wf_prep *prep, const wf_conv *v, void **state, wf_err *err)
{
    bool data = v->pass == WF_CONV_DATA;
    by_stacks *own;

    if (v->pass == WF_CONV_WEIGHTS || !wf_stack_wants(v) ||
        v->batch < STACK * v->threads) /* each thread wants a stack */
        return WF_OK;
    own = wf_arena_alloc(prep->arena, sizeof *own);
    if (!own)
        return wf_fail_nomem(err, sizeof *own);
    own->channels = data ? v->m : v->c;
    own->results = data ? v->c : v->m;
    own->steps = wf_ceil_div(own->channels, WF_TILE_K);
    own->taps = v->s.taps;
    /* An odd number of lines: rows of a tile then lie in different sets of a cache. */
    own->row = ((data ? v->s.out_size : v->s.in_size) * STACK * 4 / 64 | 1) * 64;
    if (own->steps * WF_TILE * own->row > STACK_BYTES)
        return WF_OK;
    WF_TRY(wf_stack_hops_by_result(prep->arena, v, own->steps * WF_TILE_BYTES, STACK * 4,
                                   &own->hops, err));
    own->stacks = wf_ceil_div(v->batch, STACK);
    own->parts = WF_MIN(v->threads, own->stacks);
    own->part_at = (size_t)(wf_ceil_div(own->results, WF_TILE) * panel_bytes(own));
    own->sums_at = (size_t)(own->steps * WF_TILE * own->row);
    own->part_bytes = own->sums_at + sizeof(float) * WF_TILE_BLOCK * PIXELS * STACK;
    prep->workspace_bytes = own->part_at + (size_t)own->parts * own->part_bytes;
    *state = own;
    return WF_OK;
}

const wf_conv_way wf_conv_by_stacks = {"stacks", true, .prepare = prepare, .run = run};
