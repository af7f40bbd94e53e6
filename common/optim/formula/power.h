/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/formula/power.h - a whole power, for scalars of formulas. */
#ifndef WF_OPTIM_FORMULA_POWER_H
#define WF_OPTIM_FORMULA_POWER_H

#include "common/base/cc.h"
#include <stdint.h>

/* x to the power n by squaring: pow() may give other bits on another processor or libm. */
static WF_INLINE double wf_power(double x, uint64_t n)
{
    double r = 1;

    for (; n; n >>= 1) {
        if (n & 1)
            r *= x;
        x *= x;
    }
    return r;
}

#endif
