/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/formula/adadelta.h - one element of the rule of adadelta.c, which says the formula.
 */
#ifndef WF_OPTIM_FORMULA_ADADELTA_H
#define WF_OPTIM_FORMULA_ADADELTA_H

#include "common/base/cc.h"
#include <math.h>
#include <stdint.h>

enum { WF_ADADELTA_RATE, WF_ADADELTA_RHO, WF_ADADELTA_EPSILON, WF_ADADELTA_DECAY };

typedef struct wf_adadelta {
    float rate, rho, fresh /* 1 - rho */, epsilon, decay;
} wf_adadelta;

static WF_INLINE wf_adadelta wf_adadelta_scalars(const double options[], uint64_t updates)
{
    (void)updates;
    return (wf_adadelta){
        .rate = (float)options[WF_ADADELTA_RATE],
        .rho = (float)options[WF_ADADELTA_RHO],
        .fresh = (float)(1 - options[WF_ADADELTA_RHO]),
        .epsilon = (float)options[WF_ADADELTA_EPSILON],
        .decay = (float)(options[WF_ADADELTA_DECAY] * options[WF_ADADELTA_RATE]),
    };
}

static WF_ALSO_GPU WF_INLINE void wf_adadelta_element(wf_adadelta s, float *w, float g, float *a,
                                                      float *x)
{
    float at = *w - *w * s.decay;
    float square = s.rho * *a + s.fresh * (g * g);
    float step = g * sqrtf(*x + s.epsilon) / sqrtf(square + s.epsilon);

    *a = square;
    *x = s.rho * *x + s.fresh * (step * step);
    *w = at - s.rate * step;
}

#endif
