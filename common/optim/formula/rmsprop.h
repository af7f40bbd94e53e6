/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/formula/rmsprop.h - one element of the rule of rmsprop.c, which says the formula. */
#ifndef WF_OPTIM_FORMULA_RMSPROP_H
#define WF_OPTIM_FORMULA_RMSPROP_H

#include "common/base/cc.h"
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    WF_RMSPROP_RATE,
    WF_RMSPROP_RHO,
    WF_RMSPROP_MOMENTUM,
    WF_RMSPROP_EPSILON,
    WF_RMSPROP_CENTERED,
    WF_RMSPROP_DECAY
};

typedef struct wf_rmsprop {
    float rate, rho, fresh /* 1 - rho */, mass, epsilon, decay;
} wf_rmsprop;

static WF_INLINE wf_rmsprop wf_rmsprop_scalars(const double options[], uint64_t updates)
{
    (void)updates;
    return (wf_rmsprop){
        .rate = (float)options[WF_RMSPROP_RATE],
        .rho = (float)options[WF_RMSPROP_RHO],
        .fresh = (float)(1 - options[WF_RMSPROP_RHO]),
        .mass = (float)options[WF_RMSPROP_MOMENTUM],
        .epsilon = (float)options[WF_RMSPROP_EPSILON],
        .decay = (float)(options[WF_RMSPROP_DECAY] * options[WF_RMSPROP_RATE]),
    };
}

/* `moving` and `centered` are constants at each call. m and a may be NULL where they are not used.
 */
static WF_ALSO_GPU WF_INLINE void wf_rmsprop_element(wf_rmsprop s, bool moving, bool centered,
                                                     float *w, float g, float *v, float *m,
                                                     float *a)
{
    float at = *w - *w * s.decay;
    float mean_square = s.rho * *v + s.fresh * (g * g);
    float spread = mean_square, step;

    *v = mean_square;
    if (centered) {
        float mean = s.rho * *a + s.fresh * g;

        *a = mean;
        spread = mean_square - mean * mean;
        spread = spread > 0 ? spread : 0;
    }
    step = s.rate * g / sqrtf(spread + s.epsilon);
    if (moving) {
        step = s.mass * *m + step;
        *m = step;
    }
    *w = at - step;
}

#endif
