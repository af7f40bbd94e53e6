/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/adamax.c - Adam with the largest recent gradient where Adam has the root mean
 * square.
 *
 *   w -= w * weight_decay * learning_rate
 *   m += (g - m) * (1 - beta_1)
 *   u  = max(beta_2 * u, |g|)
 *   w -= learning_rate / (1 - beta_1^t) * m / (u + epsilon)
 *
 * Keras 3's Adamax (Kingma & Ba 2015, section 7.1, where no epsilon is) and its defaults.
 * Departure: learning_rate / (1 - beta_1^t) is worked out in f64 and comes first.
 */
#include "common/optim/formula/adamax.h"
#include "common/optim/update.h"

static const wf_option options_of_adamax[] = {
    [WF_ADAMAX_RATE] = {"learning_rate", 0.001, WF_RANGE_NOT_NEGATIVE},
    [WF_ADAMAX_BETA_1] = {"beta_1", 0.9, WF_RANGE_FRACTION},
    [WF_ADAMAX_BETA_2] = {"beta_2", 0.999, WF_RANGE_FRACTION},
    [WF_ADAMAX_EPSILON] = {"epsilon", 1e-7, WF_RANGE_POSITIVE},
    [WF_ADAMAX_DECAY] = {"weight_decay", 0, WF_RANGE_NOT_NEGATIVE},
    {0},
};

static const wf_slot slots_of_adamax[] = {{.name = "momentum"}, {.name = "norm"}, {0}};

static WF_INLINE void loop(wf_adamax s, size_t n, float *restrict w, const float *restrict g,
                           float *restrict m, float *restrict u)
{
    for (size_t i = 0; i < n; i++)
        wf_adamax_element(s, &w[i], g[i], &m[i], &u[i]);
}

static WF_INLINE void adamax_body(WF_UPDATE_ARGS)
{
    loop(wf_adamax_scalars(options, updates), n, w, g, slots[0], slots[1]);
}
WF_UPDATE_FORMS(adamax)

const wf_rule wf_rule_adamax = {
    .name = "adamax",
    .options = options_of_adamax,
    .slots = slots_of_adamax,
    .update = adamax_update,
    .portable = adamax_portable,
};
