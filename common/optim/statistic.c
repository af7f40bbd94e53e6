/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/statistic.c */
#include "common/optim/statistic.h"
#include "common/optim/formula/statistic.h"

void wf_statistic_apply(double momentum, uint64_t n, float *w, const float *now)
{
    for (uint64_t i = 0; i < n; i++)
        wf_statistic_element(momentum, &w[i], now[i]);
}
