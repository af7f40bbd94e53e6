/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/nesterov.c - gradient descent with Nesterov's momentum.
 *
 *   w -= w * weight_decay * learning_rate
 *   m  = momentum * m - learning_rate * g
 *   w += momentum * m - learning_rate * g
 *
 * The formula of Keras 3's SGD(momentum=0.9, nesterov=True), under a name of its own: there 0.9 is
 * what its documentation uses, while SGD's default is 0.
 */
#include "common/optim/momentum.h"
#include "common/optim/update.h"

static const wf_option options_of_nesterov[] = {
    [WF_MOMENTUM_RATE] = {"learning_rate", 0.01, WF_RANGE_NOT_NEGATIVE},
    [WF_MOMENTUM_MASS] = {"momentum", 0.9, WF_RANGE_FRACTION},
    [WF_MOMENTUM_DECAY] = {"weight_decay", 0, WF_RANGE_NOT_NEGATIVE},
    {0},
};

static const wf_slot slots_of_nesterov[] = {{.name = "momentum"}, {0}};

static WF_INLINE void nesterov_body(WF_UPDATE_ARGS)
{
    wf_nesterov_loop(wf_momentum_scalars(options, updates), n, w, g, slots[0]);
}
WF_UPDATE_FORMS(nesterov)

const wf_rule wf_rule_nesterov = {
    .name = "nesterov",
    .options = options_of_nesterov,
    .slots = slots_of_nesterov,
    .update = nesterov_update,
    .portable = nesterov_portable,
};
