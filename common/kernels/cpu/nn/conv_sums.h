/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/conv_sums.h - gradients of weights as products of tiles leave them:
 * [blocks of 32 maps, taps, channels with padding, 32]. What is multiplied together, and what
 * becomes one map's weights, lies together.
 */
#ifndef WF_KERNELS_CPU_CONV_SUMS_H
#define WF_KERNELS_CPU_CONV_SUMS_H

#include "common/base/size.h"
#include "common/kernels/cpu/product/tiles.h"
#include "common/kernels/pool.h"
#include <stdint.h>

typedef struct wf_conv_sums {
    int64_t maps, taps, channels;
    int64_t rows; /* channels with padding */
} wf_conv_sums;

static inline int64_t wf_conv_sums_bytes(const wf_conv_sums *s)
{
    return wf_ceil_div(s->maps, WF_TILE_BLOCK) * s->taps * s->rows * WF_TILE_BLOCK *
           (int64_t)sizeof(float);
}

/* Where channel c and map m of a tap lie. */
static inline float *wf_conv_sums_at(const wf_conv_sums *s, void *sums, int64_t tap, int64_t c,
                                     int64_t m)
{
    return (float *)sums + ((m / WF_TILE_BLOCK * s->taps + tap) * s->rows + c) * WF_TILE_BLOCK +
           m % WF_TILE_BLOCK;
}

/* Adds to the sums of one tap what one piece of the pixels gives to the two by two tiles of
 * channels and maps that begin at tile (c, m); of piece 0 of the first chunk it sets them. */
typedef void wf_conv_sums_fn(const void *job, int64_t tap, int64_t c, int64_t m, int64_t piece);

/* Groups of taps that `threads` threads share beside the blocks of tiles. */
int64_t wf_conv_sums_groups(const wf_conv_sums *s, int64_t threads);

/* All blocks, taps and pieces, between wf_tiles_begin and wf_tiles_end. A piece is multiplied for
 * all taps of a group while it is in the cache, and a sum is added to in the order of the pieces.
 */
void wf_conv_sums_multiply(const wf_conv_sums *s, wf_pool *pool, int64_t groups, int64_t pieces,
                           wf_conv_sums_fn *multiply, const void *job);

/* Into weights [maps, channels, taps]. */
void wf_conv_sums_unpack(const wf_conv_sums *s, wf_pool *pool, void *sums, float *w);

#endif
