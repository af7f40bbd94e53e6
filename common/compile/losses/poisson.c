/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/losses/poisson.c - p - y log(p + 1e-7). */
#include "common/compile/losses/losses.h"

static wf_value *values(wf_emit *e, const wf_goal *g)
{
    wf_value *p = wf_emit_add(e, g->scores, wf_emit_scalar(e, g->scores->dtype, 1e-7));

    return wf_emit_sub(e, g->scores, wf_emit_mul(e, g->labels, wf_emit_log(e, p)));
}

const wf_loss_row wf_loss_poisson = {
    .name = "poisson",
    .kind = WF_LOSS_REGRESSION,
    .values = values,
};
