/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/lion.c - steps of one length, in the direction of a running mean's sign.
 *
 *   w -= w * weight_decay * learning_rate
 *   w -= learning_rate * sign(m * beta_1 + g * (1 - beta_1))
 *   m  = m * beta_2 + g * (1 - beta_2)
 *
 * Keras 3's Lion (Chen et al. 2023) and its defaults. The sign of 0 is 0.
 */
#include "common/optim/update.h"

enum { RATE, BETA_1, BETA_2, DECAY };

static const wf_option options_of_lion[] = {
    [RATE] = {"learning_rate", 0.001, WF_RANGE_NOT_NEGATIVE},
    [BETA_1] = {"beta_1", 0.9, WF_RANGE_FRACTION},
    [BETA_2] = {"beta_2", 0.99, WF_RANGE_FRACTION},
    [DECAY] = {"weight_decay", 0, WF_RANGE_NOT_NEGATIVE},
    {0},
};

static const wf_slot slots_of_lion[] = {{.name = "momentum"}, {0}};

typedef struct scalars {
    float rate, keep_1 /* beta_1 */, fresh_1 /* 1 - beta_1 */, keep_2, fresh_2, decay;
} scalars;

static WF_INLINE void loop(scalars s, size_t n, float *restrict w, const float *restrict g,
                           float *restrict m)
{
    for (size_t i = 0; i < n; i++) {
        float at = w[i] - w[i] * s.decay;
        float way = m[i] * s.keep_1 + g[i] * s.fresh_1;
        float up = way > 0 ? s.rate : 0, down = way < 0 ? s.rate : 0;

        m[i] = m[i] * s.keep_2 + g[i] * s.fresh_2;
        w[i] = at - (up - down);
    }
}

static WF_INLINE void lion_body(WF_UPDATE_ARGS)
{
    scalars s = {
        .rate = (float)options[RATE],
        .keep_1 = (float)options[BETA_1],
        .fresh_1 = (float)(1 - options[BETA_1]),
        .keep_2 = (float)options[BETA_2],
        .fresh_2 = (float)(1 - options[BETA_2]),
        .decay = (float)(options[DECAY] * options[RATE]),
    };

    (void)updates;
    loop(s, n, w, g, slots[0]);
}
WF_UPDATE_FORMS(lion)

const wf_rule wf_rule_lion = {
    .name = "lion",
    .options = options_of_lion,
    .slots = slots_of_lion,
    .update = lion_update,
    .portable = lion_portable,
};
