/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/shuffle.h - the order of an epoch, as a pure function.
 *
 * Position i of epoch e holds record shuffle(seed, e, n, i): a permutation of [0, n) that needs no
 * memory and no state, so that any worker can begin anywhere. A Feistel network of six rounds over
 * the least even number of bits that holds n, walked along its cycle until it lands below n (Black
 * and Rogaway 2002, "Ciphers with arbitrary finite domains", section 3); fewer than four steps on
 * average. The round function is the finaliser of splitmix64. It is not meant to be secret.
 */
#ifndef WF_DATA_SHUFFLE_H
#define WF_DATA_SHUFFLE_H

#include <stdint.h>

enum { WF_SHUFFLE_ROUNDS = 6 };

/* One epoch's order: plain data. */
typedef struct wf_shuffle {
    uint64_t n;
    uint32_t half_bits; /* 0: the identity */
    uint64_t keys[WF_SHUFFLE_ROUNDS];
} wf_shuffle;

/* The order of one epoch of n records (n <= 2^62), or the identity when `on` is 0. */
wf_shuffle wf_shuffle_of(uint64_t seed, uint64_t epoch, uint64_t n, int on);
/* The record at a position below n. */
uint64_t wf_shuffle_record(const wf_shuffle *s, uint64_t position);
/* Both at once. */
uint64_t wf_shuffle_at(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t position);

#endif
