/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/statistic.c */
#include "common/optim/statistic.h"

void wf_statistic_apply(double momentum, uint64_t n, float *w, const float *now)
{
    for (uint64_t i = 0; i < n; i++)
        w[i] = (float)((double)w[i] * momentum + (double)now[i] * (1.0 - momentum));
}
