/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/sgd.c - stochastic gradient descent; options and defaults are Keras 3's SGD,
 * formulas are in sgd_step.c. With `momentum` above 0 there is a slot. */
#include "common/optim/step.h"

static const wf_option options[] = {
    WF_OPTION_RATE(0.01),
    WF_OPTION_UNIT("momentum", 0),
    WF_OPTION_FLAG("nesterov", 0),
    WF_OPTION_DECAY(0),
    {0},
};
static const wf_slot_row slots[] = {{.name = "momentum", .only_if = "momentum"}, {0}};

const wf_rule wf_rule_sgd = {
    .name = "sgd", .slots = slots, .options = options, .apply = wf_sgd_step};
