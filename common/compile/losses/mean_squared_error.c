/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/losses/mean_squared_error.c - (p - y)^2. */
#include "common/compile/losses/losses.h"

static wf_value *values(wf_emit *e, const wf_goal *g)
{
    wf_value *d = wf_loss_difference(e, g);

    return wf_emit_mul(e, d, d);
}

const wf_loss_row wf_loss_mean_squared_error = {
    .name = "mean_squared_error",
    .aliases = {"mse"},
    .kind = WF_LOSS_REGRESSION,
    .values = values,
};
