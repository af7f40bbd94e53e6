/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/random/draw.h - random numbers in kernels: those of a key, as the cpu's
 * kernels have them. Philox gives four at a time, so a thread makes four neighbouring elements. */
#ifndef WF_KERNELS_CUDA_DRAW_H
#define WF_KERNELS_CUDA_DRAW_H

#include "common/kernels/cuda/code.h"
extern "C" {
#include "common/base/fold.h"
#include "common/base/philox.h"
}

/* Numbers of a key that one block gives. */
enum { WF_DRAWN = 4 };

/* u[k] = wf_rng_f32(key, 4 block + k). */
WF_CODE void wf_draw(wf_rng_key key, int64_t block, float u[WF_DRAWN])
{
    uint32_t words[WF_DRAWN];

    wf_philox(key, (uint64_t)block, words);
    for (int k = 0; k < WF_DRAWN; k++)
        u[k] = wf_philox_unit(words[k]);
}

/* The launch's blocks for n elements. */
static inline unsigned wf_blocks_of_draws(const wf_run *run, int64_t n)
{
    return wf_blocks(run, (n + WF_DRAWN - 1) / WF_DRAWN);
}

#endif
