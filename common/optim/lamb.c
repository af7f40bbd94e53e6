/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/lamb.c - Adam's step for each variable, made as long as the variable itself.
 *
 *   w    -= w * weight_decay * learning_rate
 *   m    += (g - m) * (1 - beta_1)
 *   v    += (g * g - v) * (1 - beta_2)
 *   d     = m / (1 - beta_1^t) / (sqrt(v / (1 - beta_2^t)) + epsilon)
 *   trust = |w| / |d|, or 1 where either is 0
 *   w    -= trust * learning_rate * d
 *
 * Keras 3's Lamb (You et al. 2020) and its defaults. |w| and |d| are norms over the whole variable,
 * so the row says `whole`: such a variable is never cut into slices. They are summed in f64 in
 * LANES partial sums, in an order that no processor changes.
 */
#include "common/optim/update.h"

enum { RATE, BETA_1, BETA_2, EPSILON, DECAY };
enum { LANES = 16 };

static const wf_option options_of_lamb[] = {
    [RATE] = {"learning_rate", 0.001, WF_RANGE_NOT_NEGATIVE},
    [BETA_1] = {"beta_1", 0.9, WF_RANGE_FRACTION},
    [BETA_2] = {"beta_2", 0.999, WF_RANGE_FRACTION},
    [EPSILON] = {"epsilon", 1e-7, WF_RANGE_POSITIVE},
    [DECAY] = {"weight_decay", 0, WF_RANGE_NOT_NEGATIVE},
    {0},
};

static const wf_slot slots_of_lamb[] = {{.name = "momentum"}, {.name = "velocity"}, {0}};

typedef struct scalars {
    float fresh_1 /* 1 - beta_1 */, fresh_2, per_1 /* 1 / (1 - beta_1^t) */, per_2, epsilon, decay;
} scalars;

static WF_INLINE float step_of(const scalars *s, float m, float v)
{
    return m * s->per_1 / (sqrtf(v * s->per_2) + s->epsilon);
}

/* Decay and the running means of n <= LANES elements, their squares added to the sums. */
static WF_INLINE void gather(const scalars *s, size_t n, float *restrict w, const float *restrict g,
                             float *restrict m, float *restrict v, double *restrict weights,
                             double *restrict steps)
{
    for (size_t i = 0; i < n; i++) {
        float at = w[i] - w[i] * s->decay, step;

        m[i] = m[i] + (g[i] - m[i]) * s->fresh_1;
        v[i] = v[i] + (g[i] * g[i] - v[i]) * s->fresh_2;
        step = step_of(s, m[i], v[i]);
        w[i] = at;
        weights[i] += (double)at * (double)at;
        steps[i] += (double)step * (double)step;
    }
}

static WF_INLINE double sum_of(const double lanes[LANES])
{
    double sum = 0;

    for (int i = 0; i < LANES; i++)
        sum += lanes[i];
    return sum;
}

static WF_INLINE void lamb_body(WF_UPDATE_ARGS)
{
    double weights[LANES] = {0}, steps[LANES] = {0}, w_norm, d_norm;
    float *m = slots[0], *v = slots[1], rate;
    size_t i = 0;
    scalars s = {
        .fresh_1 = (float)(1 - options[BETA_1]),
        .fresh_2 = (float)(1 - options[BETA_2]),
        .per_1 = (float)(1 / (1 - wf_power(options[BETA_1], updates))),
        .per_2 = (float)(1 / (1 - wf_power(options[BETA_2], updates))),
        .epsilon = (float)options[EPSILON],
        .decay = (float)(options[DECAY] * options[RATE]),
    };

    for (; i + LANES <= n; i += LANES)
        gather(&s, LANES, w + i, g + i, m + i, v + i, weights, steps);
    gather(&s, n - i, w + i, g + i, m + i, v + i, weights, steps);
    w_norm = sqrt(sum_of(weights));
    d_norm = sqrt(sum_of(steps));
    rate = (float)(w_norm > 0 && d_norm > 0 ? w_norm / d_norm * options[RATE] : options[RATE]);
    for (i = 0; i < n; i++)
        w[i] -= rate * step_of(&s, m[i], v[i]);
}
WF_UPDATE_FORMS(lamb)

const wf_rule wf_rule_lamb = {
    .name = "lamb",
    .options = options_of_lamb,
    .slots = slots_of_lamb,
    .update = lamb_update,
    .portable = lamb_portable,
    .whole = true,
};
