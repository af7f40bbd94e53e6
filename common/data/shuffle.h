/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/shuffle.h - the order of an epoch's records, as a pure function.
 *
 * Position i of epoch e is record f(seed, e, n, i), where f(seed, e, n, ·) is a permutation of 0 ..
 * n-1. Nothing is stored and nothing is drawn in turn: a split that is dealt again, on another
 * machine, holds the same records in the same order.
 *
 * A Feistel network over the smallest even number of bits that holds n - 1 permutes a power of
 * four; positions that fall at n or beyond are sent through again until they do not (cycle walking,
 * Black & Rogaway 2002, "Ciphers with arbitrary finite domains", section 4), at most 4 times on
 * average. Its round keys come from (seed, epoch) by Philox.
 */
#ifndef WF_DATA_SHUFFLE_H
#define WF_DATA_SHUFFLE_H

#include "common/base/rng.h"
#include <stdbool.h>
#include <stdint.h>

enum { WF_SHUFFLE_ROUNDS = 6 };

/* One epoch's order; plain and copyable. */
typedef struct wf_shuffle {
    uint64_t n;
    uint32_t half_bits; /* of each half of the network; 0: the identity */
    uint32_t keys[WF_SHUFFLE_ROUNDS];
} wf_shuffle;

/* The order of epoch `epoch` over n records; the identity when `on` is false. n < 2^62. */
wf_shuffle wf_shuffle_of(uint64_t seed, uint64_t epoch, uint64_t n, bool on);
/* The same of another key. */
wf_shuffle wf_shuffle_by(wf_rng_key key, uint64_t n, bool on);
/* The record at position `index` < n. */
uint64_t wf_shuffle_record(const wf_shuffle *s, uint64_t index);

/* Both at once, where speed does not matter. */
uint64_t wf_shuffle_at(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t index);

#endif
