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
#include "common/optim/formula/nadam.h"
#include "common/optim/update.h"

static const wf_option options_of_nadam[] = {
    [WF_NADAM_RATE] = {"learning_rate", 0.001, WF_RANGE_NOT_NEGATIVE},
    [WF_NADAM_BETA_1] = {"beta_1", 0.9, WF_RANGE_FRACTION},
    [WF_NADAM_BETA_2] = {"beta_2", 0.999, WF_RANGE_FRACTION},
    [WF_NADAM_EPSILON] = {"epsilon", 1e-7, WF_RANGE_POSITIVE},
    [WF_NADAM_DECAY] = {"weight_decay", 0, WF_RANGE_NOT_NEGATIVE},
    {0},
};

static const wf_slot slots_of_nadam[] = {{.name = "momentum"}, {.name = "velocity"}, {0}};

static WF_INLINE void loop(wf_nadam s, size_t n, float *restrict w, const float *restrict g,
                           float *restrict m, float *restrict v)
{
    for (size_t i = 0; i < n; i++)
        wf_nadam_element(s, &w[i], g[i], &m[i], &v[i]);
}

static WF_INLINE void nadam_body(WF_UPDATE_ARGS)
{
    loop(wf_nadam_scalars(options, updates), n, w, g, slots[0], slots[1]);
}
WF_UPDATE_FORMS(nadam)

const wf_rule wf_rule_nadam = {
    .name = "nadam",
    .options = options_of_nadam,
    .slots = slots_of_nadam,
    .update = nadam_update,
    .portable = nadam_portable,
};
