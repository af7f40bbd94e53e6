/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/step.h - what rules of this room share; nobody outside includes it. */
#ifndef WF_OPTIM_STEP_H
#define WF_OPTIM_STEP_H

#include "common/optim/rule.h"
#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* Bounds that options share. */
#define WF_OPTION_RATE(otherwise_)                                                                 \
    {                                                                                              \
        "learning_rate", otherwise_, 0, 1e6                                                        \
    }
#define WF_OPTION_DECAY(otherwise_)                                                                \
    {                                                                                              \
        "weight_decay", otherwise_, 0, 1e6                                                         \
    }
#define WF_OPTION_UNIT(name_, otherwise_)                                                          \
    {                                                                                              \
        name_, otherwise_, 0, 1                                                                    \
    }
#define WF_OPTION_EPSILON(otherwise_)                                                              \
    {                                                                                              \
        "epsilon", otherwise_, 0, 1                                                                \
    }
#define WF_OPTION_FLAG(name_, otherwise_)                                                          \
    {                                                                                              \
        name_, otherwise_, 0, 1                                                                    \
    }

/* base to a power by squaring: multiplications only, so the bits are the same everywhere, which
 * pow() of libm does not promise. */
double wf_power(double base, uint64_t exponent);

/* The factor of decoupled weight decay: w -= w * factor. */
static inline float wf_decay(const wf_opt *opt)
{
    return (float)(wf_opt_option(opt, "learning_rate") * wf_opt_option(opt, "weight_decay"));
}

/* The steps of sgd, momentum and nesterov (options of the same names), and of adam and adamw. */
void wf_sgd_step(const wf_opt *opt, uint64_t updates, size_t n, float w[], const float g[],
                 float *const slots[]);
void wf_adam_step(const wf_opt *opt, uint64_t updates, size_t n, float w[], const float g[],
                  float *const slots[]);

#endif
