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
#include "common/optim/formula/lamb.h"
#include "common/optim/update.h"

enum { LANES = 16 };

static const wf_option options_of_lamb[] = {
    [WF_LAMB_RATE] = {"learning_rate", 0.001, WF_RANGE_NOT_NEGATIVE},
    [WF_LAMB_BETA_1] = {"beta_1", 0.9, WF_RANGE_FRACTION},
    [WF_LAMB_BETA_2] = {"beta_2", 0.999, WF_RANGE_FRACTION},
    [WF_LAMB_EPSILON] = {"epsilon", 1e-7, WF_RANGE_POSITIVE},
    [WF_LAMB_DECAY] = {"weight_decay", 0, WF_RANGE_NOT_NEGATIVE},
    {0},
};

static const wf_slot slots_of_lamb[] = {{.name = "momentum"}, {.name = "velocity"}, {0}};

/* Decay and the running means of n <= LANES elements, their squares added to the sums. */
static WF_INLINE void gather(const wf_lamb *s, size_t n, float *restrict w, const float *restrict g,
                             float *restrict m, float *restrict v, double *restrict weights,
                             double *restrict steps)
{
    for (size_t i = 0; i < n; i++) {
        float step = wf_lamb_element(*s, &w[i], g[i], &m[i], &v[i]), at = w[i];

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
    wf_lamb s = wf_lamb_scalars(options, updates);

    for (; i + LANES <= n; i += LANES)
        gather(&s, LANES, w + i, g + i, m + i, v + i, weights, steps);
    gather(&s, n - i, w + i, g + i, m + i, v + i, weights, steps);
    w_norm = sqrt(sum_of(weights));
    d_norm = sqrt(sum_of(steps));
    rate = wf_lamb_rate(options[WF_LAMB_RATE], w_norm, d_norm);
    for (i = 0; i < n; i++)
        w[i] -= rate * wf_lamb_step(s, m[i], v[i]);
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
