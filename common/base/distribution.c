/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/distribution.c */
#include "common/base/distribution.h"
#include "common/base/normal.h"

#include <stdbool.h>

double wf_rng_normal(wf_rng_key key, uint64_t i, uint64_t attempt)
{
    return wf_normal(key, i, attempt);
}

void wf_distribution_fill(const wf_distribution *d, wf_rng_key key, uint64_t first, float out[],
                          uint64_t n)
{
    bool uniform = d->kind == WF_UNIFORM;

    if (uniform)
        wf_rng_fill_f32(key, first, out, n);
    for (uint64_t i = 0; i < n; i++)
        out[i] = wf_distribution_number(d, key, first + i, uniform ? out[i] : 0);
}
