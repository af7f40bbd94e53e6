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

enum { RATE, MOMENTUM, DECAY };

static const wf_option options_of_nesterov[] = {
    [RATE] = {"learning_rate", 0.01, WF_RANGE_NOT_NEGATIVE},
    [MOMENTUM] = {"momentum", 0.9, WF_RANGE_FRACTION},
    [DECAY] = {"weight_decay", 0, WF_RANGE_NOT_NEGATIVE},
    {0},
};

static const wf_slot slots_of_nesterov[] = {{.name = "momentum"}, {0}};

static WF_INLINE void nesterov_body(WF_UPDATE_ARGS)
{
    (void)updates;
    wf_nesterov_loop((float)options[RATE], (float)options[MOMENTUM],
                     (float)(options[DECAY] * options[RATE]), n, w, g, slots[0]);
}
WF_UPDATE_FORMS(nesterov)

const wf_rule wf_rule_nesterov = {
    .name = "nesterov",
    .options = options_of_nesterov,
    .slots = slots_of_nesterov,
    .update = nesterov_update,
    .portable = nesterov_portable,
};
