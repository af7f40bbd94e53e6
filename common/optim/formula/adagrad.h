/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/formula/adagrad.h - one element of the rule of adagrad.c, which says the formula. */
#ifndef WF_OPTIM_FORMULA_ADAGRAD_H
#define WF_OPTIM_FORMULA_ADAGRAD_H

#include "common/base/cc.h"
#include <math.h>
#include <stdint.h>

enum { WF_ADAGRAD_RATE, WF_ADAGRAD_INITIAL, WF_ADAGRAD_EPSILON, WF_ADAGRAD_DECAY };

typedef struct wf_adagrad {
    float rate, epsilon, decay;
} wf_adagrad;

static WF_INLINE wf_adagrad wf_adagrad_scalars(const double options[], uint64_t updates)
{
    (void)updates;
    return (wf_adagrad){
        .rate = (float)options[WF_ADAGRAD_RATE],
        .epsilon = (float)options[WF_ADAGRAD_EPSILON],
        .decay = (float)(options[WF_ADAGRAD_DECAY] * options[WF_ADAGRAD_RATE]),
    };
}

static WF_ALSO_GPU WF_INLINE void wf_adagrad_element(wf_adagrad s, float *w, float g, float *a)
{
    float at = *w - *w * s.decay, sum = *a + g * g;

    *a = sum;
    *w = at - s.rate * g / sqrtf(sum + s.epsilon);
}

#endif
