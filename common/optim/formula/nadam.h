/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/formula/nadam.h - one element of the rule of nadam.c, which says the formula. */
#ifndef WF_OPTIM_FORMULA_NADAM_H
#define WF_OPTIM_FORMULA_NADAM_H

#include "common/optim/formula/power.h"
#include <math.h>

enum {
    WF_NADAM_RATE,
    WF_NADAM_BETA_1,
    WF_NADAM_BETA_2,
    WF_NADAM_EPSILON,
    WF_NADAM_DECAY,
    WF_NADAM_FLAT = 900 /* 0.5 * 0.96^900 is below half a unit in the last place of 1 */
};

typedef struct wf_nadam {
    float of_mean, of_gradient, fresh_1 /* 1 - beta_1 */, fresh_2, per_2 /* 1 / (1 - beta_2^t) */;
    float epsilon, decay;
} wf_nadam;

static WF_INLINE double wf_nadam_momentum(double beta, uint64_t t)
{
    return beta * (1 - 0.5 * wf_power(0.96, t));
}

static WF_INLINE double wf_nadam_product(double beta, uint64_t t)
{
    double product = wf_power(beta, t), fade = 0.5;

    for (uint64_t i = 1; i <= t && i < WF_NADAM_FLAT; i++) {
        fade *= 0.96;
        product *= 1 - fade;
    }
    return product;
}

static WF_INLINE wf_nadam wf_nadam_scalars(const double options[], uint64_t updates)
{
    double rate = options[WF_NADAM_RATE], beta = options[WF_NADAM_BETA_1];
    double now = wf_nadam_momentum(beta, updates), next = wf_nadam_momentum(beta, updates + 1);
    double product = wf_nadam_product(beta, updates);

    return (wf_nadam){
        .of_mean = (float)(rate * next / (1 - product * next)),
        .of_gradient = (float)(rate * (1 - now) / (1 - product)),
        .fresh_1 = (float)(1 - beta),
        .fresh_2 = (float)(1 - options[WF_NADAM_BETA_2]),
        .per_2 = (float)(1 / (1 - wf_power(options[WF_NADAM_BETA_2], updates))),
        .epsilon = (float)options[WF_NADAM_EPSILON],
        .decay = (float)(options[WF_NADAM_DECAY] * rate),
    };
}

static WF_ALSO_GPU WF_INLINE void wf_nadam_element(wf_nadam s, float *w, float g, float *m,
                                                   float *v)
{
    float at = *w - *w * s.decay;
    float mean = *m + (g - *m) * s.fresh_1;
    float square = *v + (g * g - *v) * s.fresh_2;

    *m = mean;
    *v = square;
    *w = at - (s.of_mean * mean + s.of_gradient * g) / (sqrtf(square * s.per_2) + s.epsilon);
}

#endif
