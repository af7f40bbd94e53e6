/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/losses/mean_absolute_error.c - |p - y|. */
#include "common/compile/losses/losses.h"

static wf_value *values(wf_emit *e, const wf_goal *g)
{
    return wf_emit_unary(e, "Abs", wf_loss_difference(e, g));
}

const wf_loss_row wf_loss_mean_absolute_error = {
    .name = "mean_absolute_error",
    .aliases = {"mae"},
    .kind = WF_LOSS_REGRESSION,
    .values = values,
};
