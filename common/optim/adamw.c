/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/adamw.c - Adam with decoupled weight decay (Loshchilov & Hutter 2019), 0.004 as in
 * Keras 3; the formula is in adam.h. */
#include "common/optim/adam.h"
#include "common/optim/update.h"

static const wf_option options_of_adamw[] = {WF_ADAM_OPTIONS(0.004, 0), {0}};
static const wf_slot slots_of_adamw[] = {WF_ADAM_SLOTS, {0}};

static WF_INLINE void adamw_body(WF_UPDATE_ARGS)
{
    wf_adam_body(options, updates, n, w, g, slots);
}
WF_UPDATE_FORMS(adamw)

const wf_rule wf_rule_adamw = {
    .name = "adamw",
    .options = options_of_adamw,
    .slots = slots_of_adamw,
    .update = adamw_update,
    .portable = adamw_portable,
};
