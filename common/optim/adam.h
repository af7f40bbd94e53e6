/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/adam.h - what adam.c, adamw.c and amsgrad.c share: all but the defaults of
 * weight_decay and amsgrad. For this room only.
 *
 * The t-th update (t counts the slice's own):
 *
 *   w    -= w * weight_decay * learning_rate
 *   alpha = learning_rate * sqrt(1 - beta_2^t) / (1 - beta_1^t)
 *   m    += (g - m) * (1 - beta_1)
 *   v    += (g * g - v) * (1 - beta_2)
 *   w    -= m * alpha / (sqrt(v) + epsilon)
 *
 * With `amsgrad`, h = max(h, v) stands in for v in the last line. This is Keras 3's form of Kingma
 * & Ba 2015, the one "just before section 2.1", whose epsilon is their "epsilon hat"; PyTorch
 * divides by sqrt(v / (1 - beta_2^t)) + epsilon instead. Departure: alpha is worked out in f64;
 * Keras does it in f32, where 1 - beta_2 for t = 1 has an error of 5e-5.
 */
#ifndef WF_OPTIM_ADAM_H
#define WF_OPTIM_ADAM_H

#include "common/optim/formula/adam.h"
#include "common/optim/update.h"

#define WF_ADAM_OPTIONS(weight_decay, amsgrad)                                                     \
    [WF_ADAM_RATE] = {"learning_rate", 0.001, WF_RANGE_NOT_NEGATIVE},                              \
    [WF_ADAM_BETA_1] = {"beta_1", 0.9, WF_RANGE_FRACTION},                                         \
    [WF_ADAM_BETA_2] = {"beta_2", 0.999, WF_RANGE_FRACTION},                                       \
    [WF_ADAM_EPSILON] = {"epsilon", 1e-7, WF_RANGE_POSITIVE},                                      \
    [WF_ADAM_AMSGRAD] = {"amsgrad", amsgrad, WF_RANGE_FLAG},                                       \
    [WF_ADAM_DECAY] = {"weight_decay", weight_decay, WF_RANGE_NOT_NEGATIVE}

#define WF_ADAM_SLOTS                                                                              \
    {.name = "momentum"}, {.name = "velocity"},                                                    \
    {                                                                                              \
        .name = "velocity_hat", .needs = "amsgrad"                                                 \
    }

/* `amsgrad` is a constant at each call; h may be NULL without it. */
static WF_INLINE void wf_adam_loop(wf_adam s, bool amsgrad, size_t n, float *restrict w,
                                   const float *restrict g, float *restrict m, float *restrict v,
                                   float *restrict h)
{
    for (size_t i = 0; i < n; i++)
        wf_adam_element(s, amsgrad, &w[i], g[i], &m[i], &v[i], amsgrad ? &h[i] : NULL);
}

static WF_INLINE void wf_adam_body(WF_UPDATE_ARGS)
{
    wf_adam s = wf_adam_scalars(options, updates);

    if (options[WF_ADAM_AMSGRAD] == 0)
        wf_adam_loop(s, false, n, w, g, slots[0], slots[1], NULL);
    else
        wf_adam_loop(s, true, n, w, g, slots[0], slots[1], slots[2]);
}

#endif
