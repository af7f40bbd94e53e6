/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/formula/momentum.h - one element of the rules of momentum.c and nesterov.c, which
 * say the formulas; sgd.c with its options has them too. */
#ifndef WF_OPTIM_FORMULA_MOMENTUM_H
#define WF_OPTIM_FORMULA_MOMENTUM_H

#include "common/base/cc.h"
#include <stdint.h>

/* Of momentum and of nesterov. */
enum { WF_MOMENTUM_RATE, WF_MOMENTUM_MASS, WF_MOMENTUM_DECAY };

typedef struct wf_momentum {
    float rate, mass, decay;
} wf_momentum;

static WF_INLINE wf_momentum wf_momentum_scalars(const double options[], uint64_t updates)
{
    (void)updates;
    return (wf_momentum){
        .rate = (float)options[WF_MOMENTUM_RATE],
        .mass = (float)options[WF_MOMENTUM_MASS],
        .decay = (float)(options[WF_MOMENTUM_DECAY] * options[WF_MOMENTUM_RATE]),
    };
}

/* m = mass * m - rate * g;  w += m */
static WF_ALSO_GPU WF_INLINE void wf_momentum_element(wf_momentum s, float *w, float g, float *m)
{
    float at = *w - *w * s.decay, move = s.mass * *m - s.rate * g;

    *m = move;
    *w = at + move;
}

/* m = mass * m - rate * g;  w += mass * m - rate * g, with the new m */
static WF_ALSO_GPU WF_INLINE void wf_nesterov_element(wf_momentum s, float *w, float g, float *m)
{
    float at = *w - *w * s.decay, step = s.rate * g, move = s.mass * *m - step;

    *m = move;
    *w = at + (s.mass * move - step);
}

#endif
