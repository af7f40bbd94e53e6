/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/formula/lion.h - one element of the rule of lion.c, which says the formula. */
#ifndef WF_OPTIM_FORMULA_LION_H
#define WF_OPTIM_FORMULA_LION_H

#include "common/base/cc.h"
#include <stdint.h>

enum { WF_LION_RATE, WF_LION_BETA_1, WF_LION_BETA_2, WF_LION_DECAY };

typedef struct wf_lion {
    float rate, keep_1 /* beta_1 */, fresh_1 /* 1 - beta_1 */, keep_2, fresh_2, decay;
} wf_lion;

static WF_INLINE wf_lion wf_lion_scalars(const double options[], uint64_t updates)
{
    (void)updates;
    return (wf_lion){
        .rate = (float)options[WF_LION_RATE],
        .keep_1 = (float)options[WF_LION_BETA_1],
        .fresh_1 = (float)(1 - options[WF_LION_BETA_1]),
        .keep_2 = (float)options[WF_LION_BETA_2],
        .fresh_2 = (float)(1 - options[WF_LION_BETA_2]),
        .decay = (float)(options[WF_LION_DECAY] * options[WF_LION_RATE]),
    };
}

static WF_ALSO_GPU WF_INLINE void wf_lion_element(wf_lion s, float *w, float g, float *m)
{
    float at = *w - *w * s.decay;
    float way = *m * s.keep_1 + g * s.fresh_1;
    float up = way > 0 ? s.rate : 0, down = way < 0 ? s.rate : 0;

    *m = *m * s.keep_2 + g * s.fresh_2;
    *w = at - (up - down);
}

#endif
