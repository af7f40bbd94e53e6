/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/formula/lamb.h - one element of the rule of lamb.c, which says the formula and takes
 * the norms between its two passes. */
#ifndef WF_OPTIM_FORMULA_LAMB_H
#define WF_OPTIM_FORMULA_LAMB_H

#include "common/optim/formula/power.h"
#include <math.h>

enum { WF_LAMB_RATE, WF_LAMB_BETA_1, WF_LAMB_BETA_2, WF_LAMB_EPSILON, WF_LAMB_DECAY };

typedef struct wf_lamb {
    float fresh_1 /* 1 - beta_1 */, fresh_2, per_1 /* 1 / (1 - beta_1^t) */, per_2, epsilon, decay;
} wf_lamb;

static WF_INLINE wf_lamb wf_lamb_scalars(const double options[], uint64_t updates)
{
    return (wf_lamb){
        .fresh_1 = (float)(1 - options[WF_LAMB_BETA_1]),
        .fresh_2 = (float)(1 - options[WF_LAMB_BETA_2]),
        .per_1 = (float)(1 / (1 - wf_power(options[WF_LAMB_BETA_1], updates))),
        .per_2 = (float)(1 / (1 - wf_power(options[WF_LAMB_BETA_2], updates))),
        .epsilon = (float)options[WF_LAMB_EPSILON],
        .decay = (float)(options[WF_LAMB_DECAY] * options[WF_LAMB_RATE]),
    };
}

/* d of the formula, from the means. */
static WF_ALSO_GPU WF_INLINE float wf_lamb_step(wf_lamb s, float m, float v)
{
    return m * s.per_1 / (sqrtf(v * s.per_2) + s.epsilon);
}

/* The first pass: decay and the running means. Returns d. */
static WF_ALSO_GPU WF_INLINE float wf_lamb_element(wf_lamb s, float *w, float g, float *m, float *v)
{
    float at = *w - *w * s.decay;

    *m = *m + (g - *m) * s.fresh_1;
    *v = *v + (g * g - *v) * s.fresh_2;
    *w = at;
    return wf_lamb_step(s, *m, *v);
}

/* The learning rate times trust, from the norms of w and d. */
static WF_ALSO_GPU WF_INLINE float wf_lamb_rate(double rate, double w_norm, double d_norm)
{
    return (float)(w_norm > 0 && d_norm > 0 ? w_norm / d_norm * rate : rate);
}

#endif
