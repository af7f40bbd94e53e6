/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/formula/adam.h - one element of the rule of adam.c, adamw.c and amsgrad.c; the
 * formula is in common/optim/adam.h. */
#ifndef WF_OPTIM_FORMULA_ADAM_H
#define WF_OPTIM_FORMULA_ADAM_H

#include "common/optim/formula/power.h"
#include <math.h>
#include <stdbool.h>

enum {
    WF_ADAM_RATE,
    WF_ADAM_BETA_1,
    WF_ADAM_BETA_2,
    WF_ADAM_EPSILON,
    WF_ADAM_AMSGRAD,
    WF_ADAM_DECAY
};

typedef struct wf_adam {
    float alpha, fresh_1 /* 1 - beta_1 */, fresh_2, epsilon, decay;
} wf_adam;

static WF_INLINE wf_adam wf_adam_scalars(const double options[], uint64_t updates)
{
    double rate = options[WF_ADAM_RATE];
    double b1 = options[WF_ADAM_BETA_1], b2 = options[WF_ADAM_BETA_2];

    return (wf_adam){
        .alpha = (float)(rate * sqrt(1 - wf_power(b2, updates)) / (1 - wf_power(b1, updates))),
        .fresh_1 = (float)(1 - b1),
        .fresh_2 = (float)(1 - b2),
        .epsilon = (float)options[WF_ADAM_EPSILON],
        .decay = (float)(options[WF_ADAM_DECAY] * rate),
    };
}

/* `amsgrad` is a constant at each call; h may be NULL without it. */
static WF_ALSO_GPU WF_INLINE void wf_adam_element(wf_adam s, bool amsgrad, float *w, float g,
                                                  float *m, float *v, float *h)
{
    float at = *w - *w * s.decay;
    float mean = *m + (g - *m) * s.fresh_1;
    float square = *v + (g * g - *v) * s.fresh_2;

    *m = mean;
    *v = square;
    if (amsgrad) {
        square = *h > square ? *h : square;
        *h = square;
    }
    *w = at - mean * s.alpha / (sqrtf(square) + s.epsilon);
}

#endif
