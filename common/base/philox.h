/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/philox.h - rng.h's numbers as inline functions, for rng.c and for kernels of GPUs.
 *
 * Philox 4x32-10; constants from Salmon et al. 2011, table 2. */
#ifndef WF_BASE_PHILOX_H
#define WF_BASE_PHILOX_H

#include "common/base/cc.h"
#include "common/base/rng.h"

#define WF_PHILOX_MUL_0 0xD2511F53u
#define WF_PHILOX_MUL_1 0xCD9E8D57u
#define WF_PHILOX_WEYL_0 0x9E3779B9u
#define WF_PHILOX_WEYL_1 0xBB67AE85u

/* Four 32-bit words for one counter: wf_rng_block. */
WF_ALSO_GPU static inline void wf_philox(wf_rng_key key, uint64_t counter, uint32_t out[4])
{
    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32);
    uint32_t c2 = (uint32_t)key.stream, c3 = (uint32_t)(key.stream >> 32);
    uint32_t k0 = (uint32_t)key.seed, k1 = (uint32_t)(key.seed >> 32);

    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)WF_PHILOX_MUL_0 * c0, p1 = (uint64_t)WF_PHILOX_MUL_1 * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;

        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += WF_PHILOX_WEYL_0;
        k1 += WF_PHILOX_WEYL_1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* A word as a float in [0, 1). Number i of wf_rng_f32 is word i % 4 of block i / 4, so that a fill
 * uses all four words of a block. */
WF_ALSO_GPU static inline float wf_philox_unit(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}

/* wf_rng_f64. */
WF_ALSO_GPU static inline double wf_philox_f64(wf_rng_key key, uint64_t counter)
{
    uint32_t w[4];

    wf_philox(key, counter, w);
    return (double)(((uint64_t)w[1] << 32 | w[0]) >> 11) * 0x1p-53;
}

#endif
