/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/ftrl.c - follow the regularised leader: weights that are worth nothing become 0.
 *
 *   w  -= w * weight_decay * learning_rate
 *   b   = a + g * g                                 a starts at initial_accumulator_value
 *   s   = (sqrt(b) - sqrt(a)) / learning_rate
 *   l  += g + 2 * l2_shrinkage_regularization_strength * w - s * w
 *   q   = sqrt(b) / learning_rate + 2 * l2'
 *   l2' = l2_regularization_strength + beta / (2 * learning_rate)
 *   w   = (clip(l, -l1, l1) - l) / q,  l1 = l1_regularization_strength
 *   a   = b
 *
 * Keras 3's Ftrl (McMahan et al. 2013) and its defaults. `learning_rate_power` is -0.5 only: any
 * other wants a pow() whose bits differ between processors. At a rate of 0, which a schedule may
 * reach, nothing changes.
 */
#include "common/optim/formula/ftrl.h"
#include "common/optim/update.h"

static const wf_option options_of_ftrl[] = {
    [WF_FTRL_RATE] = {"learning_rate", 0.001, WF_RANGE_NOT_NEGATIVE},
    [WF_FTRL_POWER] = {"learning_rate_power", -0.5, WF_RANGE_MINUS_HALF},
    [WF_FTRL_INITIAL] = {"initial_accumulator_value", 0.1, WF_RANGE_NOT_NEGATIVE},
    [WF_FTRL_L1] = {"l1_regularization_strength", 0, WF_RANGE_NOT_NEGATIVE},
    [WF_FTRL_L2] = {"l2_regularization_strength", 0, WF_RANGE_NOT_NEGATIVE},
    [WF_FTRL_SHRINKAGE] = {"l2_shrinkage_regularization_strength", 0, WF_RANGE_NOT_NEGATIVE},
    [WF_FTRL_BETA] = {"beta", 0, WF_RANGE_NOT_NEGATIVE},
    [WF_FTRL_DECAY] = {"weight_decay", 0, WF_RANGE_NOT_NEGATIVE},
    {0},
};

static const wf_slot slots_of_ftrl[] = {
    {.name = "accumulator", .initial_from = "initial_accumulator_value"},
    {.name = "linear"},
    {0},
};

static WF_INLINE void loop(wf_ftrl s, size_t n, float *restrict w, const float *restrict g,
                           float *restrict a, float *restrict l)
{
    for (size_t i = 0; i < n; i++)
        wf_ftrl_element(s, &w[i], g[i], &a[i], &l[i]);
}

static WF_INLINE void ftrl_body(WF_UPDATE_ARGS)
{
    if (options[WF_FTRL_RATE] <= 0)
        return;
    loop(wf_ftrl_scalars(options, updates), n, w, g, slots[0], slots[1]);
}
WF_UPDATE_FORMS(ftrl)

const wf_rule wf_rule_ftrl = {
    .name = "ftrl",
    .options = options_of_ftrl,
    .slots = slots_of_ftrl,
    .update = ftrl_update,
    .portable = ftrl_portable,
};
