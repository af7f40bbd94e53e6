/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/formula/ftrl.h - one element of the rule of ftrl.c, which says the formula. */
#ifndef WF_OPTIM_FORMULA_FTRL_H
#define WF_OPTIM_FORMULA_FTRL_H

#include "common/base/cc.h"
#include <math.h>
#include <stdint.h>

enum {
    WF_FTRL_RATE,
    WF_FTRL_POWER,
    WF_FTRL_INITIAL,
    WF_FTRL_L1,
    WF_FTRL_L2,
    WF_FTRL_SHRINKAGE,
    WF_FTRL_BETA,
    WF_FTRL_DECAY
};

typedef struct wf_ftrl {
    float per_rate /* 1 / learning_rate */, l1, l2_twice, shrinkage_twice, decay;
} wf_ftrl;

/* Of a learning rate above 0: at 0 nothing changes. */
static WF_INLINE wf_ftrl wf_ftrl_scalars(const double options[], uint64_t updates)
{
    double rate = options[WF_FTRL_RATE];

    (void)updates;
    return (wf_ftrl){
        .per_rate = (float)(1 / rate),
        .l1 = (float)options[WF_FTRL_L1],
        .l2_twice = (float)(2 * options[WF_FTRL_L2] + options[WF_FTRL_BETA] / rate),
        .shrinkage_twice = (float)(2 * options[WF_FTRL_SHRINKAGE]),
        .decay = (float)(options[WF_FTRL_DECAY] * rate),
    };
}

static WF_ALSO_GPU WF_INLINE void wf_ftrl_element(wf_ftrl s, float *w, float g, float *a, float *l)
{
    float at = *w - *w * s.decay;
    float sum = *a + g * g, root = sqrtf(sum);
    float pull = (root - sqrtf(*a)) * s.per_rate;
    float linear = *l + ((g + s.shrinkage_twice * at) - pull * at);
    float quadratic = root * s.per_rate + s.l2_twice;
    float held = linear > s.l1 ? s.l1 : linear;

    held = held < -s.l1 ? -s.l1 : held;
    *a = sum;
    *l = linear;
    /* All 0 only where no gradient has come yet and the accumulator began at 0. */
    *w = quadratic > 0 ? (held - linear) / quadratic : at;
}

#endif
