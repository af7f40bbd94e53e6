/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/rng.c */
#include "common/base/rng.h"
#include "common/base/cc.h"
#include "common/base/fold.h"
#include "common/base/philox.h"
#include "common/base/status.h"

#include <sys/random.h>

void wf_rng_block(wf_rng_key key, uint64_t counter, uint32_t out[4])
{
    wf_philox(key, counter, out);
}

uint64_t wf_rng_u64(wf_rng_key key, uint64_t counter)
{
    uint32_t w[4];

    wf_rng_block(key, counter, w);
    return (uint64_t)w[1] << 32 | w[0];
}

float wf_rng_f32(wf_rng_key key, uint64_t counter)
{
    uint32_t w[4];

    wf_rng_block(key, counter / 4, w);
    return wf_philox_unit(w[counter % 4]);
}

/* LANES blocks side by side: the rounds of each are the same multiplications, so they vectorise.
 * Not fewer: gcc 12 unrolls loops of up to 16 turns first, and then does not. */
enum { LANES = 32 };

WF_MULTIVERSION static void fill_lanes(wf_rng_key key, uint64_t block, float *out)
{
    uint32_t c0[LANES], c1[LANES], c2[LANES], c3[LANES];
    uint32_t k0 = (uint32_t)key.seed, k1 = (uint32_t)(key.seed >> 32);

    for (uint32_t i = 0; i < LANES; i++) {
        c0[i] = (uint32_t)(block + i);
        c1[i] = (uint32_t)((block + i) >> 32);
        c2[i] = (uint32_t)key.stream;
        c3[i] = (uint32_t)(key.stream >> 32);
    }
    for (int round = 0; round < 10; round++, k0 += WF_PHILOX_WEYL_0, k1 += WF_PHILOX_WEYL_1)
        for (int i = 0; i < LANES; i++) {
            uint64_t p0 = (uint64_t)WF_PHILOX_MUL_0 * c0[i], p1 = (uint64_t)WF_PHILOX_MUL_1 * c2[i];

            c0[i] = (uint32_t)(p1 >> 32) ^ c1[i] ^ k0;
            c2[i] = (uint32_t)(p0 >> 32) ^ c3[i] ^ k1;
            c1[i] = (uint32_t)p1;
            c3[i] = (uint32_t)p0;
        }
    for (int i = 0; i < LANES; i++) {
        out[4 * i] = wf_philox_unit(c0[i]);
        out[4 * i + 1] = wf_philox_unit(c1[i]);
        out[4 * i + 2] = wf_philox_unit(c2[i]);
        out[4 * i + 3] = wf_philox_unit(c3[i]);
    }
}

void wf_rng_fill_f32(wf_rng_key key, uint64_t first, float out[], size_t n)
{
    size_t i = 0;

    for (; i < n && (first + i) % 4; i++)
        out[i] = wf_rng_f32(key, first + i);
    for (; i + 4 * LANES <= n; i += 4 * LANES)
        fill_lanes(key, (first + i) / 4, out + i);
    for (; i < n; i++)
        out[i] = wf_rng_f32(key, first + i);
}

double wf_rng_f64(wf_rng_key key, uint64_t counter)
{
    return wf_philox_f64(key, counter);
}

uint64_t wf_rng_below(wf_rng_key key, uint64_t counter, uint64_t n)
{
    return (uint64_t)((unsigned __int128)wf_rng_u64(key, counter) * n >> 64);
}

uint64_t wf_rng_fold(uint64_t stream, uint64_t value)
{
    return wf_fold(stream, value);
}

uint64_t wf_rng_fold_str(uint64_t stream, const char *name)
{
    uint64_t h = 0xCBF29CE484222325u; /* FNV-1a, 64 bits */

    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 0x100000001B3u;
    return wf_rng_fold(stream, h);
}

uint64_t wf_random_id(void)
{
    uint64_t id = 0;

    while (id == 0)
        wf_assert(getrandom(&id, sizeof id, 0) == (ssize_t)sizeof id);
    return id;
}
