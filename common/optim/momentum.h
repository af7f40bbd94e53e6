/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/momentum.h - the loops of heavy-ball and of Nesterov's momentum, which sgd.c with
 * its options shares with momentum.c and nesterov.c. For this room only. */
#ifndef WF_OPTIM_MOMENTUM_H
#define WF_OPTIM_MOMENTUM_H

#include "common/base/cc.h"
#include <stddef.h>

/* m = mass * m - rate * g;  w += m */
static WF_INLINE void wf_momentum_loop(float rate, float mass, float decay, size_t n,
                                       float *restrict w, const float *restrict g,
                                       float *restrict m)
{
    for (size_t i = 0; i < n; i++) {
        float at = w[i] - w[i] * decay, move = mass * m[i] - rate * g[i];

        m[i] = move;
        w[i] = at + move;
    }
}

/* m = mass * m - rate * g;  w += mass * m - rate * g, with the new m */
static WF_INLINE void wf_nesterov_loop(float rate, float mass, float decay, size_t n,
                                       float *restrict w, const float *restrict g,
                                       float *restrict m)
{
    for (size_t i = 0; i < n; i++) {
        float at = w[i] - w[i] * decay, step = rate * g[i], move = mass * m[i] - step;

        m[i] = move;
        w[i] = at + (mass * move - step);
    }
}

#endif
