/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/lion.c - steps of one length, in the direction of a running mean's sign.
 *
 *   w -= w * weight_decay * learning_rate
 *   w -= learning_rate * sign(m * beta_1 + g * (1 - beta_1))
 *   m  = m * beta_2 + g * (1 - beta_2)
 *
 * Keras 3's Lion (Chen et al. 2023) and its defaults. The sign of 0 is 0.
 */
#include "common/optim/formula/lion.h"
#include "common/optim/update.h"

static const wf_option options_of_lion[] = {
    [WF_LION_RATE] = {"learning_rate", 0.001, WF_RANGE_NOT_NEGATIVE},
    [WF_LION_BETA_1] = {"beta_1", 0.9, WF_RANGE_FRACTION},
    [WF_LION_BETA_2] = {"beta_2", 0.99, WF_RANGE_FRACTION},
    [WF_LION_DECAY] = {"weight_decay", 0, WF_RANGE_NOT_NEGATIVE},
    {0},
};

static const wf_slot slots_of_lion[] = {{.name = "momentum"}, {0}};

static WF_INLINE void loop(wf_lion s, size_t n, float *restrict w, const float *restrict g,
                           float *restrict m)
{
    for (size_t i = 0; i < n; i++)
        wf_lion_element(s, &w[i], g[i], &m[i]);
}

static WF_INLINE void lion_body(WF_UPDATE_ARGS)
{
    loop(wf_lion_scalars(options, updates), n, w, g, slots[0]);
}
WF_UPDATE_FORMS(lion)

const wf_rule wf_rule_lion = {
    .name = "lion",
    .options = options_of_lion,
    .slots = slots_of_lion,
    .update = lion_update,
    .portable = lion_portable,
};
