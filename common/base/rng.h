/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/rng.h - random numbers from a counter: no generator has hidden state.
 *
 * Philox 4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3", section 3.3).
 * The same key and counter give the same four words on every processor, in any order, on any
 * thread.
 */
#ifndef WF_BASE_RNG_H
#define WF_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

typedef struct wf_rng_key {
    uint64_t seed;   /* the job's, or the test's */
    uint64_t stream; /* what the numbers are for: a hash of names and numbers, see wf_rng_fold */
} wf_rng_key;

/* Four 32-bit words for one counter. */
void wf_rng_block(wf_rng_key key, uint64_t counter, uint32_t out[4]);

/* 64 bits for one counter. */
uint64_t wf_rng_u64(wf_rng_key key, uint64_t counter);
/* In [0, 1), 24 bits. */
float wf_rng_f32(wf_rng_key key, uint64_t counter);
/* In [0, 1), 53 bits. */
double wf_rng_f64(wf_rng_key key, uint64_t counter);
/* In [0, n), n > 0, without bias that 64 bits could show. */
uint64_t wf_rng_below(wf_rng_key key, uint64_t counter, uint64_t n);

/* Fills out[i] = wf_rng_f32(key, first + i). */
void wf_rng_fill_f32(wf_rng_key key, uint64_t first, float out[], size_t n);

/* Mixes a number or a name into a stream: stream = fold(fold(0, "dropout_1"), epoch)... */
uint64_t wf_rng_fold(uint64_t stream, uint64_t value);
uint64_t wf_rng_fold_str(uint64_t stream, const char *name);

/* 64 bits from the operating system, for incarnations and initial sequence numbers; never 0. */
uint64_t wf_random_id(void);

#endif
