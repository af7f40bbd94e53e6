/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/sgd.c - gradient descent.
 *
 *   w -= w * weight_decay * learning_rate
 *   w -= learning_rate * g
 *
 * With `momentum` above 0 it is the rule of momentum.c, with `nesterov` too that of nesterov.c, as
 * in Keras 3's SGD, whose options and defaults these are. Departure, here and in all rules: Keras
 * multiplies w by weight_decay and by learning_rate in f32 in turn, we by their product.
 */
#include "common/optim/momentum.h"
#include "common/optim/update.h"

enum { RATE, MOMENTUM, NESTEROV, DECAY };

static const wf_option options_of_sgd[] = {
    [RATE] = {"learning_rate", 0.01, WF_RANGE_NOT_NEGATIVE},
    [MOMENTUM] = {"momentum", 0, WF_RANGE_FRACTION},
    [NESTEROV] = {"nesterov", 0, WF_RANGE_FLAG},
    [DECAY] = {"weight_decay", 0, WF_RANGE_NOT_NEGATIVE},
    {0},
};

static const wf_slot slots_of_sgd[] = {{.name = "momentum", .needs = "momentum"}, {0}};

static WF_INLINE void descend(float rate, float decay, size_t n, float *restrict w,
                              const float *restrict g)
{
    for (size_t i = 0; i < n; i++) {
        float at = w[i] - w[i] * decay;

        w[i] = at - rate * g[i];
    }
}

static WF_INLINE void sgd_body(WF_UPDATE_ARGS)
{
    float rate = (float)options[RATE], decay = (float)(options[DECAY] * options[RATE]);
    float mass = (float)options[MOMENTUM];

    (void)updates;
    if (options[MOMENTUM] == 0)
        descend(rate, decay, n, w, g);
    else if (options[NESTEROV] == 0)
        wf_momentum_loop(rate, mass, decay, n, w, g, slots[0]);
    else
        wf_nesterov_loop(rate, mass, decay, n, w, g, slots[0]);
}
WF_UPDATE_FORMS(sgd)

const wf_rule wf_rule_sgd = {
    .name = "sgd",
    .options = options_of_sgd,
    .slots = slots_of_sgd,
    .update = sgd_update,
    .portable = sgd_portable,
};
