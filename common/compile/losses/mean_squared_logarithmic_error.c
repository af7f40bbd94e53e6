/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/losses/mean_squared_logarithmic_error.c - (log(max(p, 1e-7) + 1) - log(max(y,
 * 1e-7) + 1))^2. */
#include "common/compile/losses/losses.h"

static wf_value *log_of(wf_emit *e, wf_value *x)
{
    x = wf_emit_binary(e, "Max", x, wf_emit_scalar(e, x->dtype, 1e-7));
    return x ? wf_emit_log(e, wf_emit_add(e, x, wf_emit_scalar(e, x->dtype, 1.0))) : NULL;
}

static wf_value *values(wf_emit *e, const wf_goal *g)
{
    wf_value *d = wf_emit_sub(e, log_of(e, g->scores), log_of(e, g->labels));

    return wf_emit_mul(e, d, d);
}

const wf_loss_row wf_loss_mean_squared_logarithmic_error = {
    .name = "mean_squared_logarithmic_error",
    .aliases = {"msle"},
    .kind = WF_LOSS_REGRESSION,
    .values = values,
};
