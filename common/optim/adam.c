/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/adam.c - steps from running means of the gradient and of its square; the formula
 * is in adam.h. */
#include "common/optim/adam.h"
#include "common/optim/update.h"

static const wf_option options_of_adam[] = {WF_ADAM_OPTIONS(0, 0), {0}};
static const wf_slot slots_of_adam[] = {WF_ADAM_SLOTS, {0}};

static WF_INLINE void adam_body(WF_UPDATE_ARGS)
{
    wf_adam_body(options, updates, n, w, g, slots);
}
WF_UPDATE_FORMS(adam)

const wf_rule wf_rule_adam = {
    .name = "adam",
    .options = options_of_adam,
    .slots = slots_of_adam,
    .update = adam_update,
    .portable = adam_portable,
};
