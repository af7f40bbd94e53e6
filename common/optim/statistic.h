/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/statistic.h - the update of a statistic: a moving average of what workers push
 * (Ioffe & Szegedy 2015, section 3.1). */
#ifndef WF_OPTIM_STATISTIC_H
#define WF_OPTIM_STATISTIC_H

#include <stdint.h>

/* w [n] keeps `momentum` of itself and takes the rest of `now` [n], the value of a batch. Computed
 * in double and rounded once: equal bits everywhere, as the rules'. */
void wf_statistic_apply(double momentum, uint64_t n, float *w, const float *now);

#endif
