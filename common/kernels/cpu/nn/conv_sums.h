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

/* Into weights [maps, channels, taps]. */
void wf_conv_sums_unpack(const wf_conv_sums *s, wf_pool *pool, void *sums, float *w);

#endif
