/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/conv_sums.c */
#include "common/kernels/cpu/nn/conv_sums.h"

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
