/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/update.h - what the files of update rules share. For this room only.
 *
 * A rule is written once, as NAME_body, a WF_INLINE function in plain C; WF_UPDATE_FORMS(NAME)
 * makes of it NAME_update, compiled for several processors, and NAME_portable. Both must give the
 * same bits: no libm but sqrt, no reassociation, no contraction (the build sets -ffp-contract=off).
 */
#ifndef WF_OPTIM_UPDATE_H
#define WF_OPTIM_UPDATE_H

#include "common/base/cc.h"
#include "common/optim/rule.h"
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#define WF_UPDATE_ARGS                                                                             \
    const double options[], uint64_t updates, size_t n, float *w, const float *g,                  \
        float *const slots[]

#define WF_UPDATE_FORMS(name)                                                                      \
    WF_MULTIVERSION static void name##_update(WF_UPDATE_ARGS)                                      \
    {                                                                                              \
        name##_body(options, updates, n, w, g, slots);                                             \
    }                                                                                              \
    static void name##_portable(WF_UPDATE_ARGS)                                                    \
    {                                                                                              \
        name##_body(options, updates, n, w, g, slots);                                             \
    }

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

/* The rows, one for each file of this room. */
extern const wf_rule wf_rule_adagrad, wf_rule_adam, wf_rule_adamw, wf_rule_momentum,
    wf_rule_nesterov, wf_rule_rmsprop, wf_rule_sgd;

#endif
