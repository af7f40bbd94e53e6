/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/normal.h - distribution.h's numbers as inline functions, for distribution.c and for
 * kernels of GPUs. */
#ifndef WF_BASE_NORMAL_H
#define WF_BASE_NORMAL_H

#include "common/base/cc.h"
#include "common/base/distribution.h"
#include "common/base/fold.h"
#include "common/base/philox.h"
#include <math.h>

/* wf_rng_normal. */
WF_ALSO_GPU static inline double wf_normal(wf_rng_key key, uint64_t i, uint64_t attempt)
{
    double a, b;

    key.stream = wf_fold(key.stream, attempt);
    a = wf_philox_f64(key, 2 * i);
    b = wf_philox_f64(key, 2 * i + 1);
    return sqrt(-2.0 * log(1.0 - a)) * cos(6.283185307179586 * b);
}

WF_ALSO_GPU static inline double wf_truncated_normal(wf_rng_key key, uint64_t i)
{
    double x;
    uint64_t attempt = 0;

    /* Falls outside once in 22 draws; 64 misses in a row do not happen, and the bound says so. */
    do
        x = wf_normal(key, i, attempt++);
    while (fabs(x) > 2.0 && attempt < 64);
    return fmin(2.0, fmax(-2.0, x));
}

/* Number i, where `unit` is wf_rng_f32's: only uniform numbers use it. */
WF_ALSO_GPU static inline float wf_distribution_number(const wf_distribution *d, wf_rng_key key,
                                                       uint64_t i, float unit)
{
    double x = 0.0;

    if (d->kind == WF_UNIFORM)
        x = 2.0 * (double)unit - 1.0;
    else if (d->kind == WF_NORMAL)
        x = wf_normal(key, i, 0);
    else if (d->kind == WF_TRUNCATED_NORMAL)
        x = wf_truncated_normal(key, i);
    return (float)(d->centre + x * d->spread);
}

#endif
