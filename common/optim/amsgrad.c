/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/amsgrad.c - Adam that never forgets how large a gradient was (Reddi et al. 2018):
 * the rule of adam.c with its option `amsgrad` on, under a name of its own; the formula is in
 * adam.h. */
#include "common/optim/adam.h"
#include "common/optim/update.h"

static const wf_option options_of_amsgrad[] = {WF_ADAM_OPTIONS(0, 1), {0}};
static const wf_slot slots_of_amsgrad[] = {WF_ADAM_SLOTS, {0}};

static WF_INLINE void amsgrad_body(WF_UPDATE_ARGS)
{
    wf_adam_body(options, updates, n, w, g, slots);
}
WF_UPDATE_FORMS(amsgrad)

const wf_rule wf_rule_amsgrad = {
    .name = "amsgrad",
    .options = options_of_amsgrad,
    .slots = slots_of_amsgrad,
    .update = amsgrad_update,
    .portable = amsgrad_portable,
};
