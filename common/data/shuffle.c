/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/shuffle.c */
#include "common/data/shuffle.h"
#include "common/base/status.h"

wf_shuffle wf_shuffle_of(uint64_t seed, uint64_t epoch, uint64_t n, bool on)
{
    wf_rng_key key = {seed, wf_rng_fold(wf_rng_fold_str(0, "shuffle"), epoch)};

    return wf_shuffle_by(key, n, on);
}

wf_shuffle wf_shuffle_by(wf_rng_key key, uint64_t n, bool on)
{
    wf_shuffle s = {.n = n};
    uint32_t block[4];

    wf_assert(n < UINT64_C(1) << 62);
    if (!on || n < 2)
        return s;
    s.half_bits = 1;
    while ((n - 1) >> (2 * s.half_bits))
        s.half_bits++;
    for (uint32_t i = 0; i < WF_SHUFFLE_ROUNDS; i++) {
        if (i % 4 == 0)
            wf_rng_block(key, i / 4, block);
        s.keys[i] = block[i % 4];
    }
    return s;
}

/* A full-period mix of 32 bits (the finaliser of MurmurHash3, Appleby), of a half and a key. */
static uint32_t mix(uint32_t x, uint32_t key)
{
    x ^= key;
    x ^= x >> 16;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    x *= 0xc2b2ae35u;
    x ^= x >> 16;
    return x + key;
}

static uint64_t network(const wf_shuffle *s, uint64_t x)
{
    uint32_t mask = (uint32_t)((UINT64_C(1) << s->half_bits) - 1);
    uint32_t left = (uint32_t)(x >> s->half_bits) & mask, right = (uint32_t)x & mask;

    for (uint32_t i = 0; i < WF_SHUFFLE_ROUNDS; i++) {
        uint32_t next = left ^ (mix(right, s->keys[i]) & mask);

        left = right;
        right = next;
    }
    return (uint64_t)left << s->half_bits | right;
}

uint64_t wf_shuffle_record(const wf_shuffle *s, uint64_t index)
{
    wf_assert(index < s->n);
    if (s->half_bits == 0)
        return index;
    do
        index = network(s, index);
    while (index >= s->n);
    return index;
}

uint64_t wf_shuffle_at(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t index)
{
    wf_shuffle s = wf_shuffle_of(seed, epoch, n, true);

    return wf_shuffle_record(&s, index);
}
