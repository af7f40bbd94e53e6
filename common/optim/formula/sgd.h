/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/formula/sgd.h - one element of the rule of sgd.c, which says the formula. */
#ifndef WF_OPTIM_FORMULA_SGD_H
#define WF_OPTIM_FORMULA_SGD_H

#include "common/optim/formula/momentum.h"

enum { WF_SGD_RATE, WF_SGD_MOMENTUM, WF_SGD_NESTEROV, WF_SGD_DECAY };

/* For each of the three formulas that the options choose among. */
static WF_INLINE wf_momentum wf_sgd_scalars(const double options[], uint64_t updates)
{
    (void)updates;
    return (wf_momentum){
        .rate = (float)options[WF_SGD_RATE],
        .mass = (float)options[WF_SGD_MOMENTUM],
        .decay = (float)(options[WF_SGD_DECAY] * options[WF_SGD_RATE]),
    };
}

/* Without momentum. */
static WF_ALSO_GPU WF_INLINE void wf_sgd_element(wf_momentum s, float *w, float g)
{
    float at = *w - *w * s.decay;

    *w = at - s.rate * g;
}

#endif
