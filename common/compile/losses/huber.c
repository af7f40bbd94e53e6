/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/losses/huber.c - d^2 / 2 up to |d| = delta, delta |d| - delta^2 / 2 beyond; d = p
 * - y. */
#include "common/compile/losses/losses.h"

static wf_value *values(wf_emit *e, const wf_goal *g)
{
    /* With m = min(|d|, delta) both are m (|d| - m / 2): one form, and no branch to differentiate.
     */
    wf_value *size = wf_emit_unary(e, "Abs", wf_loss_difference(e, g));
    wf_value *delta = wf_emit_scalar(e, g->scores->dtype, wf_goal_number(g, "delta", 1.0));
    wf_value *least = wf_emit_binary(e, "Min", size, delta);

    return wf_emit_mul(e, least, wf_emit_sub(e, size, wf_emit_scale(e, least, 0.5)));
}

static const wf_option_row options[] = {WF_LOSS_NUMBER("delta", 1e-30, 1e30), {0}};

const wf_loss_row wf_loss_huber = {
    .name = "huber",
    .kind = WF_LOSS_REGRESSION,
    .options = options,
    .values = values,
};
