/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/losses/hinge.c - max(1 - y p, 0); labels are -1 and 1, or 0 and 1. */
#include "common/compile/losses/losses.h"

static wf_value *values(wf_emit *e, const wf_goal *g)
{
    wf_value *reach = wf_emit_mul(e, wf_loss_signs(e, g), g->scores);

    return wf_emit_unary(e, "Relu",
                         wf_emit_sub(e, wf_emit_scalar(e, g->scores->dtype, 1.0), reach));
}

const wf_loss_row wf_loss_hinge = {
    .name = "hinge",
    .kind = WF_LOSS_BINARY,
    .margin = true,
    .values = values,
};
