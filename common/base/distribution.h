/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/distribution.h - numbers of a distribution, each by a counter: no order, thread or
 * neighbour changes one. First values of variables are made of them, wherever they are made.
 *
 * Equal bits on every processor for constants and uniform numbers; normal ones go by the logarithm
 * and the cosine of the C library.
 */
#ifndef WF_BASE_DISTRIBUTION_H
#define WF_BASE_DISTRIBUTION_H

#include "common/base/rng.h"

typedef enum wf_distribution_kind {
    WF_CONSTANT = 0,
    WF_UNIFORM,          /* from -1 to 1 */
    WF_TRUNCATED_NORMAL, /* standard normal, drawn again beyond 2 */
    WF_NORMAL,
    WF_N_DISTRIBUTIONS
} wf_distribution_kind;

/* A number is centre + spread * draw; a constant is its centre. */
typedef struct wf_distribution {
    wf_distribution_kind kind;
    double centre, spread;
} wf_distribution;

/* Fills out[i] with number first + i of the key. */
void wf_distribution_fill(const wf_distribution *d, wf_rng_key key, uint64_t first, float out[],
                          uint64_t n);
/* Number i of the standard normal distribution, by Box and Muller (1958) from two words;
 * `attempt` tells those drawn again apart. */
double wf_rng_normal(wf_rng_key key, uint64_t i, uint64_t attempt);

#endif
