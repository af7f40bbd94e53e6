/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/nadam.c - Adam that looks ahead by Nesterov's momentum.
 *
 *   w   -= w * weight_decay * learning_rate
 *   u_t  = beta_1 * (1 - 0.5 * 0.96^t),  p_t = u_1 * ... * u_t
 *   m   += (g - m) * (1 - beta_1)
 *   v   += (g * g - v) * (1 - beta_2)
 *   d    = u_(t+1) * m / (1 - p_(t+1)) + (1 - u_t) * g / (1 - p_t)
 *   w   -= learning_rate * d / (sqrt(v / (1 - beta_2^t)) + epsilon)
 *
 * Keras 3's Nadam (Dozat 2016) and its defaults. Keras keeps p_t as a variable; here it follows
 * from t alone, as beta_1^t times a product whose factors are 1 in f64 from t = 900 on, so that a
 * slice carries nothing but its count. The scalars are worked out in f64.
 */
#include "common/optim/update.h"

enum { RATE, BETA_1, BETA_2, EPSILON, DECAY };
enum { FLAT = 900 }; /* 0.5 * 0.96^900 is below half a unit in the last place of 1 */

static const wf_option options_of_nadam[] = {
    [RATE] = {"learning_rate", 0.001, WF_RANGE_NOT_NEGATIVE},
    [BETA_1] = {"beta_1", 0.9, WF_RANGE_FRACTION},
    [BETA_2] = {"beta_2", 0.999, WF_RANGE_FRACTION},
    [EPSILON] = {"epsilon", 1e-7, WF_RANGE_POSITIVE},
    [DECAY] = {"weight_decay", 0, WF_RANGE_NOT_NEGATIVE},
    {0},
};

static const wf_slot slots_of_nadam[] = {{.name = "momentum"}, {.name = "velocity"}, {0}};

typedef struct scalars {
    float of_mean, of_gradient, fresh_1 /* 1 - beta_1 */, fresh_2, per_2 /* 1 / (1 - beta_2^t) */;
    float epsilon, decay;
} scalars;

static WF_INLINE void loop(scalars s, size_t n, float *restrict w, const float *restrict g,
                           float *restrict m, float *restrict v)
{
    for (size_t i = 0; i < n; i++) {
        float at = w[i] - w[i] * s.decay;
        float mean = m[i] + (g[i] - m[i]) * s.fresh_1;
        float square = v[i] + (g[i] * g[i] - v[i]) * s.fresh_2;

        m[i] = mean;
        v[i] = square;
        w[i] =
            at - (s.of_mean * mean + s.of_gradient * g[i]) / (sqrtf(square * s.per_2) + s.epsilon);
    }
}

static WF_INLINE double momentum_at(double beta, uint64_t t)
{
    return beta * (1 - 0.5 * wf_power(0.96, t));
}

static WF_INLINE double product_to(double beta, uint64_t t)
{
    double product = wf_power(beta, t), fade = 0.5;

    for (uint64_t i = 1; i <= t && i < FLAT; i++) {
        fade *= 0.96;
        product *= 1 - fade;
    }
    return product;
}

static WF_INLINE void nadam_body(WF_UPDATE_ARGS)
{
    double rate = options[RATE], beta = options[BETA_1];
    double now = momentum_at(beta, updates), next = momentum_at(beta, updates + 1);
    double product = product_to(beta, updates);
    scalars s = {
        .of_mean = (float)(rate * next / (1 - product * next)),
        .of_gradient = (float)(rate * (1 - now) / (1 - product)),
        .fresh_1 = (float)(1 - beta),
        .fresh_2 = (float)(1 - options[BETA_2]),
        .per_2 = (float)(1 / (1 - wf_power(options[BETA_2], updates))),
        .epsilon = (float)options[EPSILON],
        .decay = (float)(options[DECAY] * rate),
    };

    loop(s, n, w, g, slots[0], slots[1]);
}
WF_UPDATE_FORMS(nadam)

const wf_rule wf_rule_nadam = {
    .name = "nadam",
    .options = options_of_nadam,
    .slots = slots_of_nadam,
    .update = nadam_update,
    .portable = nadam_portable,
};
