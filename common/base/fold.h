/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/fold.h - wf_rng_fold as an inline function, for rng.c and for kernels of GPUs. */
#ifndef WF_BASE_FOLD_H
#define WF_BASE_FOLD_H

#include "common/base/cc.h"
#include <stdint.h>

/* The finaliser of splitmix64 (Steele, Lea and Flood 2014, section 5). */
WF_ALSO_GPU static inline uint64_t wf_fold_mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* wf_rng_fold. */
WF_ALSO_GPU static inline uint64_t wf_fold(uint64_t stream, uint64_t value)
{
    return wf_fold_mix(stream * 0x9E3779B97F4A7C15u + wf_fold_mix(value + 0x9E3779B97F4A7C15u));
}

#endif
