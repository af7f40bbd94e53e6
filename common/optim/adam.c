/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/adam.c - options and defaults are Keras 3's Adam; formulas are in adam_step.c. A
 * beta of exactly 1 would divide by zero in the bias correction, so the bound is just below. */
#include "common/optim/step.h"

static const wf_option options[] = {
    WF_OPTION_RATE(0.001),
    {"beta_1", 0.9, 0, 0.9999999},
    {"beta_2", 0.999, 0, 0.9999999},
    WF_OPTION_EPSILON(1e-7),
    WF_OPTION_FLAG("amsgrad", 0),
    WF_OPTION_DECAY(0),
    {0},
};
static const wf_slot_row slots[] = {
    {.name = "m"}, {.name = "v"}, {.name = "v_hat", .only_if = "amsgrad"}, {0}};

const wf_rule wf_rule_adam = {
    .name = "adam", .slots = slots, .options = options, .apply = wf_adam_step};
