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
#include "common/optim/formula/sgd.h"
#include "common/optim/momentum.h"
#include "common/optim/update.h"

static const wf_option options_of_sgd[] = {
    [WF_SGD_RATE] = {"learning_rate", 0.01, WF_RANGE_NOT_NEGATIVE},
    [WF_SGD_MOMENTUM] = {"momentum", 0, WF_RANGE_FRACTION},
    [WF_SGD_NESTEROV] = {"nesterov", 0, WF_RANGE_FLAG},
    [WF_SGD_DECAY] = {"weight_decay", 0, WF_RANGE_NOT_NEGATIVE},
    {0},
};

static const wf_slot slots_of_sgd[] = {{.name = "momentum", .needs = "momentum"}, {0}};

static WF_INLINE void descend(wf_momentum s, size_t n, float *restrict w, const float *restrict g)
{
    for (size_t i = 0; i < n; i++)
        wf_sgd_element(s, &w[i], g[i]);
}

static WF_INLINE void sgd_body(WF_UPDATE_ARGS)
{
    wf_momentum s = wf_sgd_scalars(options, updates);

    if (options[WF_SGD_MOMENTUM] == 0)
        descend(s, n, w, g);
    else if (options[WF_SGD_NESTEROV] == 0)
        wf_momentum_loop(s, n, w, g, slots[0]);
    else
        wf_nesterov_loop(s, n, w, g, slots[0]);
}
WF_UPDATE_FORMS(sgd)

const wf_rule wf_rule_sgd = {
    .name = "sgd",
    .options = options_of_sgd,
    .slots = slots_of_sgd,
    .update = sgd_update,
    .portable = sgd_portable,
};
