/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/losses/cosine_similarity.c - -sum(y p) / (|y| |p|) along the last axis: -1 when
 * they point the same way. A vector shorter than 1e-7 counts as one of that length, as in Keras. */
#include "common/compile/losses/losses.h"

/* The length; its square is held above 1e-14, so that the root has a slope at 0 too. */
static wf_value *length(wf_emit *e, wf_value *x)
{
    const int64_t last[] = {-1};
    wf_value *square = wf_emit_reduce_sum(e, wf_emit_mul(e, x, x), 1, last, false);

    square = wf_emit_binary(e, "Max", square, wf_emit_scalar(e, x->dtype, 1e-14));
    return wf_emit_unary(e, "Sqrt", square);
}

static wf_value *values(wf_emit *e, const wf_goal *g)
{
    const int64_t last[] = {-1};
    wf_value *dot = wf_emit_reduce_sum(e, wf_emit_mul(e, g->labels, g->scores), 1, last, false);
    wf_value *sizes = wf_emit_mul(e, length(e, g->labels), length(e, g->scores));

    return wf_emit_neg(e, wf_emit_div(e, dot, sizes));
}

const wf_loss_row wf_loss_cosine_similarity = {
    .name = "cosine_similarity",
    .kind = WF_LOSS_REGRESSION,
    .values = values,
};
