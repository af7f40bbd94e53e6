/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/nesterov.c - Nesterov's momentum: Keras 3's SGD(momentum=0.9, nesterov=True) under a
 * name of its own. Formulas are in sgd_step.c. */
#include "common/optim/step.h"

static const wf_option options[] = {
    WF_OPTION_RATE(0.01),
    WF_OPTION_UNIT("momentum", 0.9),
    WF_OPTION_FLAG("nesterov", 1),
    WF_OPTION_DECAY(0),
    {0},
};
static const wf_slot_row slots[] = {{.name = "momentum", .only_if = "momentum"}, {0}};

const wf_rule wf_rule_nesterov = {
    .name = "nesterov", .slots = slots, .options = options, .apply = wf_sgd_step};
