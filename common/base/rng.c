/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/rng.c - Philox 4x32-10; constants from Salmon et al. 2011, table 2. */
#include "common/base/rng.h"
#include "common/base/cc.h"
#include "common/base/status.h"

#include <sys/random.h>

static const uint32_t MUL_0 = 0xD2511F53u, MUL_1 = 0xCD9E8D57u;
static const uint32_t WEYL_0 = 0x9E3779B9u, WEYL_1 = 0xBB67AE85u;

void wf_rng_block(wf_rng_key key, uint64_t counter, uint32_t out[4])
{
    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32);
    uint32_t c2 = (uint32_t)key.stream, c3 = (uint32_t)(key.stream >> 32);
    uint32_t k0 = (uint32_t)key.seed, k1 = (uint32_t)(key.seed >> 32);

    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)MUL_0 * c0, p1 = (uint64_t)MUL_1 * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;

        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += WEYL_0;
        k1 += WEYL_1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

uint64_t wf_rng_u64(wf_rng_key key, uint64_t counter)
{
    uint32_t w[4];

    wf_rng_block(key, counter, w);
    return (uint64_t)w[1] << 32 | w[0];
}

static float unit_f32(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}

/* Number i is word i % 4 of block i / 4, so that a fill uses all four words of a block. */
float wf_rng_f32(wf_rng_key key, uint64_t counter)
{
    uint32_t w[4];

    wf_rng_block(key, counter / 4, w);
    return unit_f32(w[counter % 4]);
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
    for (int round = 0; round < 10; round++, k0 += WEYL_0, k1 += WEYL_1)
        for (int i = 0; i < LANES; i++) {
            uint64_t p0 = (uint64_t)MUL_0 * c0[i], p1 = (uint64_t)MUL_1 * c2[i];

            c0[i] = (uint32_t)(p1 >> 32) ^ c1[i] ^ k0;
            c2[i] = (uint32_t)(p0 >> 32) ^ c3[i] ^ k1;
            c1[i] = (uint32_t)p1;
            c3[i] = (uint32_t)p0;
        }
    for (int i = 0; i < LANES; i++) {
        out[4 * i] = unit_f32(c0[i]);
        out[4 * i + 1] = unit_f32(c1[i]);
        out[4 * i + 2] = unit_f32(c2[i]);
        out[4 * i + 3] = unit_f32(c3[i]);
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
    return (double)(wf_rng_u64(key, counter) >> 11) * 0x1p-53;
}

uint64_t wf_rng_below(wf_rng_key key, uint64_t counter, uint64_t n)
{
    return (uint64_t)((unsigned __int128)wf_rng_u64(key, counter) * n >> 64);
}

/* The finaliser of splitmix64 (Steele, Lea and Flood 2014, section 5). */
static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

uint64_t wf_rng_fold(uint64_t stream, uint64_t value)
{
    return mix(stream * 0x9E3779B97F4A7C15u + mix(value + 0x9E3779B97F4A7C15u));
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
