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
#include "common/optim/update.h"

enum { RATE, POWER, INITIAL, L1, L2, SHRINKAGE, BETA, DECAY };

static const wf_option options_of_ftrl[] = {
    [RATE] = {"learning_rate", 0.001, WF_RANGE_NOT_NEGATIVE},
    [POWER] = {"learning_rate_power", -0.5, WF_RANGE_MINUS_HALF},
    [INITIAL] = {"initial_accumulator_value", 0.1, WF_RANGE_NOT_NEGATIVE},
    [L1] = {"l1_regularization_strength", 0, WF_RANGE_NOT_NEGATIVE},
    [L2] = {"l2_regularization_strength", 0, WF_RANGE_NOT_NEGATIVE},
    [SHRINKAGE] = {"l2_shrinkage_regularization_strength", 0, WF_RANGE_NOT_NEGATIVE},
    [BETA] = {"beta", 0, WF_RANGE_NOT_NEGATIVE},
    [DECAY] = {"weight_decay", 0, WF_RANGE_NOT_NEGATIVE},
    {0},
};

static const wf_slot slots_of_ftrl[] = {
    {.name = "accumulator", .initial_from = "initial_accumulator_value"},
    {.name = "linear"},
    {0},
};

typedef struct scalars {
    float per_rate /* 1 / learning_rate */, l1, l2_twice, shrinkage_twice, decay;
} scalars;

static WF_INLINE void loop(scalars s, size_t n, float *restrict w, const float *restrict g,
                           float *restrict a, float *restrict l)
{
    for (size_t i = 0; i < n; i++) {
        float at = w[i] - w[i] * s.decay;
        float sum = a[i] + g[i] * g[i], root = sqrtf(sum);
        float pull = (root - sqrtf(a[i])) * s.per_rate;
        float linear = l[i] + ((g[i] + s.shrinkage_twice * at) - pull * at);
        float quadratic = root * s.per_rate + s.l2_twice;
        float held = linear > s.l1 ? s.l1 : linear;

        held = held < -s.l1 ? -s.l1 : held;
        a[i] = sum;
        l[i] = linear;
        /* All 0 only where no gradient has come yet and the accumulator began at 0. */
        w[i] = quadratic > 0 ? (held - linear) / quadratic : at;
    }
}

static WF_INLINE void ftrl_body(WF_UPDATE_ARGS)
{
    double rate = options[RATE];
    scalars s;

    (void)updates;
    if (rate <= 0)
        return;
    s = (scalars){
        .per_rate = (float)(1 / rate),
        .l1 = (float)options[L1],
        .l2_twice = (float)(2 * options[L2] + options[BETA] / rate),
        .shrinkage_twice = (float)(2 * options[SHRINKAGE]),
        .decay = (float)(options[DECAY] * rate),
    };
    loop(s, n, w, g, slots[0], slots[1]);
}
WF_UPDATE_FORMS(ftrl)

const wf_rule wf_rule_ftrl = {
    .name = "ftrl",
    .options = options_of_ftrl,
    .slots = slots_of_ftrl,
    .update = ftrl_update,
    .portable = ftrl_portable,
};
