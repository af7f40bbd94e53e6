/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/momentum.h - the loops of heavy-ball and of Nesterov's momentum, which sgd.c with
 * its options shares with momentum.c and nesterov.c. For this room only. */
#ifndef WF_OPTIM_MOMENTUM_H
#define WF_OPTIM_MOMENTUM_H

#include "common/optim/formula/momentum.h"
#include <stddef.h>

static WF_INLINE void wf_momentum_loop(wf_momentum s, size_t n, float *restrict w,
                                       const float *restrict g, float *restrict m)
{
    for (size_t i = 0; i < n; i++)
        wf_momentum_element(s, &w[i], g[i], &m[i]);
}

static WF_INLINE void wf_nesterov_loop(wf_momentum s, size_t n, float *restrict w,
                                       const float *restrict g, float *restrict m)
{
    for (size_t i = 0; i < n; i++)
        wf_nesterov_element(s, &w[i], g[i], &m[i]);
}

#endif
