/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/losses/mean_absolute_percentage_error.c - 100 |p - y| / max(|y|, 1e-7). */
#include "common/compile/losses/losses.h"

static wf_value *values(wf_emit *e, const wf_goal *g)
{
    wf_value *off = wf_emit_unary(e, "Abs", wf_loss_difference(e, g));
    wf_value *size = wf_emit_unary(e, "Abs", g->labels);

    size = wf_emit_binary(e, "Max", size, wf_emit_scalar(e, g->labels->dtype, 1e-7));
    return wf_emit_scale(e, wf_emit_div(e, off, size), 100.0);
}

const wf_loss_row wf_loss_mean_absolute_percentage_error = {
    .name = "mean_absolute_percentage_error",
    .aliases = {"mape"},
    .kind = WF_LOSS_REGRESSION,
    .values = values,
};
