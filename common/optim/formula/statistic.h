/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/formula/statistic.h - one element of the update of statistic.h, which says the
 * formula. */
#ifndef WF_OPTIM_FORMULA_STATISTIC_H
#define WF_OPTIM_FORMULA_STATISTIC_H

#include "common/base/cc.h"

/* w = momentum * w + (1 - momentum) * now, in double and rounded once */
static WF_ALSO_GPU WF_INLINE void wf_statistic_element(double momentum, float *w, float now)
{
    *w = (float)((double)*w * momentum + (double)now * (1.0 - momentum));
}

#endif
