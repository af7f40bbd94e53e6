/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/losses/log_cosh.c - log(cosh(p - y)), as |d| + softplus(-2 |d|) - log 2: cosh() of
 * 89 is infinite in f32. */
#include "common/compile/losses/losses.h"

static wf_value *values(wf_emit *e, const wf_goal *g)
{
    wf_value *size = wf_emit_unary(e, "Abs", wf_loss_difference(e, g));
    wf_value *rest = wf_emit_unary(e, "Softplus", wf_emit_scale(e, size, -2.0));

    return wf_emit_sub(e, wf_emit_add(e, size, rest),
                       wf_emit_scalar(e, g->scores->dtype, 0.69314718055994530942));
}

const wf_loss_row wf_loss_log_cosh = {
    .name = "log_cosh",
    .kind = WF_LOSS_REGRESSION,
    .values = values,
};
