/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/conv_sums.c */
#include "common/kernels/cpu/nn/conv_sums.h"
#include "common/kernels/cpu/nn/conv.h"

/* ---- products ---- */

typedef struct products {
    const wf_conv_sums *s;
    int64_t groups, pieces;
    wf_conv_sums_fn *multiply;
    const void *job;
} products;

/* Blocks of two tiles. */
static int64_t across(const wf_conv_sums *s)
{
    return wf_ceil_div(s->rows, 2 * WF_TILE);
}

static int64_t down(const wf_conv_sums *s)
{
    return wf_ceil_div(s->maps, 2 * WF_TILE);
}

int64_t wf_conv_sums_groups(const wf_conv_sums *s, int64_t threads)
{
    return WF_MIN(wf_ceil_div(threads, across(s) * down(s)), s->taps);
}

/* Blocks of two by two tiles, channels by maps, each with a group of taps. */
static void blocks(void *arg, int64_t begin, int64_t end)
{
    const products *p = arg;
    int64_t columns = across(p->s);

    wf_tiles_begin();
    for (int64_t i = begin; i < end; i++) {
        int64_t group = i % p->groups, block = i / p->groups;
        int64_t c = block % columns * 2, m = block / columns * 2;

        for (int64_t piece = 0; piece < p->pieces; piece++)
            for (int64_t t = wf_conv_part(p->s->taps, p->groups, group);
                 t < wf_conv_part(p->s->taps, p->groups, group + 1); t++)
                p->multiply(p->job, t, c, m, piece);
    }
    wf_tiles_end();
}

void wf_conv_sums_multiply(const wf_conv_sums *s, wf_pool *pool, int64_t groups, int64_t pieces,
                           wf_conv_sums_fn *multiply, const void *job)
{
    products p = {s, groups, pieces, multiply, job};

    wf_pool_for(pool, across(s) * down(s) * groups, 1, blocks, &p);
}

/* ---- weights ---- */

typedef struct job {
    const wf_conv_sums *s;
    void *sums;
    float *w;
} job;

/* Blocks of maps [begin, end). */
static void range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const wf_conv_sums *s = j->s;
    int64_t last = WF_MIN(end * WF_TILE_BLOCK, s->maps);

    /* A tile of maps at a time: more lines of weights would drive each other out of a cache. */
    for (int64_t m0 = begin * WF_TILE_BLOCK; m0 < last; m0 += WF_TILE)
        for (int64_t c = 0; c < s->channels; c++)
            for (int64_t t = 0; t < s->taps; t++) {
                const float *from = wf_conv_sums_at(s, j->sums, t, c, m0);

                for (int64_t m = m0; m < WF_MIN(m0 + WF_TILE, last); m++)
                    j->w[(m * s->channels + c) * s->taps + t] = from[m - m0];
            }
}

void wf_conv_sums_unpack(const wf_conv_sums *s, wf_pool *pool, void *sums, float *w)
{
    job j = {s, sums, w};

    wf_pool_for(pool, wf_ceil_div(s->maps, WF_TILE_BLOCK), 1, range, &j);
}
