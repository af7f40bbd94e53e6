/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/losses/kl_divergence.c - sum(y log(y / p)), both held within 1e-7 and 1. */
#include "common/compile/losses/losses.h"

static wf_value *held(wf_emit *e, wf_value *x)
{
    wf_value *in[3] = {x, wf_emit_scalar(e, x->dtype, 1e-7), wf_emit_scalar(e, x->dtype, 1.0)};

    return wf_emit_op(e, "Clip", 3, in, 0, NULL);
}

static wf_value *values(wf_emit *e, const wf_goal *g)
{
    const int64_t last[] = {-1};
    wf_value *y = held(e, g->labels);
    wf_value *ratio = wf_emit_div(e, y, held(e, g->scores));

    return wf_emit_reduce_sum(e, wf_emit_mul(e, y, wf_emit_log(e, ratio)), 1, last, false);
}

const wf_loss_row wf_loss_kl_divergence = {
    .name = "kl_divergence",
    .aliases = {"kld", "kullback_leibler_divergence"},
    .kind = WF_LOSS_CATEGORICAL,
    .values = values,
};
