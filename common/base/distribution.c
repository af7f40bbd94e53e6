/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/distribution.c */
#include "common/base/distribution.h"

#include <math.h>

double wf_rng_normal(wf_rng_key key, uint64_t i, uint64_t attempt)
{
    double a, b;

    key.stream = wf_rng_fold(key.stream, attempt);
    a = wf_rng_f64(key, 2 * i);
    b = wf_rng_f64(key, 2 * i + 1);
    return sqrt(-2.0 * log(1.0 - a)) * cos(6.283185307179586 * b);
}

static double truncated(wf_rng_key key, uint64_t i)
{
    double x;
    uint64_t attempt = 0;

    /* Falls outside once in 22 draws; 64 misses in a row do not happen, and the bound says so. */
    do
        x = wf_rng_normal(key, i, attempt++);
    while (fabs(x) > 2.0 && attempt < 64);
    return fmin(2.0, fmax(-2.0, x));
}

void wf_distribution_fill(const wf_distribution *d, wf_rng_key key, uint64_t first, float out[],
                          uint64_t n)
{
    if (d->kind == WF_UNIFORM)
        wf_rng_fill_f32(key, first, out, n);
    for (uint64_t i = 0; i < n; i++) {
        double x = 0.0;

        if (d->kind == WF_UNIFORM)
            x = 2.0 * (double)out[i] - 1.0;
        else if (d->kind == WF_NORMAL)
            x = wf_rng_normal(key, first + i, 0);
        else if (d->kind == WF_TRUNCATED_NORMAL)
            x = truncated(key, first + i);
        out[i] = (float)(d->centre + x * d->spread);
    }
}
