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

#include "common/optim/update.h"

enum {
    WF_ADAM_RATE,
    WF_ADAM_BETA_1,
    WF_ADAM_BETA_2,
    WF_ADAM_EPSILON,
    WF_ADAM_AMSGRAD,
    WF_ADAM_DECAY
};

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

typedef struct wf_adam {
    float alpha, fresh_1 /* 1 - beta_1 */, fresh_2, epsilon, decay;
} wf_adam;

/* `amsgrad` is a constant at each call; h may be NULL without it. */
static WF_INLINE void wf_adam_loop(wf_adam s, bool amsgrad, size_t n, float *restrict w,
                                   const float *restrict g, float *restrict m, float *restrict v,
                                   float *restrict h)
{
    for (size_t i = 0; i < n; i++) {
        float at = w[i] - w[i] * s.decay;
        float mean = m[i] + (g[i] - m[i]) * s.fresh_1;
        float square = v[i] + (g[i] * g[i] - v[i]) * s.fresh_2;

        m[i] = mean;
        v[i] = square;
        if (amsgrad) {
            square = h[i] > square ? h[i] : square;
            h[i] = square;
        }
        w[i] = at - mean * s.alpha / (sqrtf(square) + s.epsilon);
    }
}

static WF_INLINE void wf_adam_body(WF_UPDATE_ARGS)
{
    double rate = options[WF_ADAM_RATE];
    double b1 = options[WF_ADAM_BETA_1], b2 = options[WF_ADAM_BETA_2];
    wf_adam s = {
        .alpha = (float)(rate * sqrt(1 - wf_power(b2, updates)) / (1 - wf_power(b1, updates))),
        .fresh_1 = (float)(1 - b1),
        .fresh_2 = (float)(1 - b2),
        .epsilon = (float)options[WF_ADAM_EPSILON],
        .decay = (float)(options[WF_ADAM_DECAY] * rate),
    };

    if (options[WF_ADAM_AMSGRAD] == 0)
        wf_adam_loop(s, false, n, w, g, slots[0], slots[1], NULL);
    else
        wf_adam_loop(s, true, n, w, g, slots[0], slots[1], slots[2]);
}

#endif
