/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/formula/adamax.h - one element of the rule of adamax.c, which says the formula. */
#ifndef WF_OPTIM_FORMULA_ADAMAX_H
#define WF_OPTIM_FORMULA_ADAMAX_H

#include "common/optim/formula/power.h"
#include <math.h>

enum { WF_ADAMAX_RATE, WF_ADAMAX_BETA_1, WF_ADAMAX_BETA_2, WF_ADAMAX_EPSILON, WF_ADAMAX_DECAY };

typedef struct wf_adamax {
    float alpha, fresh /* 1 - beta_1 */, keep /* beta_2 */, epsilon, decay;
} wf_adamax;

static WF_INLINE wf_adamax wf_adamax_scalars(const double options[], uint64_t updates)
{
    double rate = options[WF_ADAMAX_RATE], b1 = options[WF_ADAMAX_BETA_1];

    return (wf_adamax){
        .alpha = (float)(rate / (1 - wf_power(b1, updates))),
        .fresh = (float)(1 - b1),
        .keep = (float)options[WF_ADAMAX_BETA_2],
        .epsilon = (float)options[WF_ADAMAX_EPSILON],
        .decay = (float)(options[WF_ADAMAX_DECAY] * rate),
    };
}

static WF_ALSO_GPU WF_INLINE void wf_adamax_element(wf_adamax s, float *w, float g, float *m,
                                                    float *u)
{
    float at = *w - *w * s.decay;
    float mean = *m + (g - *m) * s.fresh;
    float old = s.keep * *u, size = fabsf(g);
    float norm = old > size ? old : size;

    *m = mean;
    *u = norm;
    *w = at - mean * s.alpha / (norm + s.epsilon);
}

#endif
