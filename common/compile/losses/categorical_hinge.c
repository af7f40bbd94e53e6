/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/losses/categorical_hinge.c - max(max((1 - y) p) - sum(y p) + 1, 0), labels
 * one-hot. */
#include "common/compile/losses/losses.h"

/* The first largest of the last axis, through a mask: its gradient goes to that one alone. */
static wf_value *largest(wf_emit *e, wf_value *x, int64_t classes)
{
    const int64_t last[] = {-1};
    wf_attr attrs[] = {wf_attr_int("axis", -1), wf_attr_int("keepdims", 1)};
    wf_tensor *ids = NULL;
    wf_value *at = wf_emit_op(e, "ArgMax", 1, &x, 2, attrs), *mask;

    if (!at)
        return NULL;
    e->rc = wf_tensor_new(WF_I64, 1, &classes, &ids, e->err);
    if (e->rc != WF_OK)
        return NULL;
    for (int64_t i = 0; i < classes; i++)
        ((int64_t *)ids->data)[i] = i;
    mask = wf_emit_binary(e, "Equal", at, wf_emit_constant(e, "classes", &ids));
    x = wf_emit_where(e, mask, x, wf_emit_scalar(e, x->dtype, 0.0));
    return wf_emit_reduce_sum(e, x, 1, last, false);
}

static wf_value *values(wf_emit *e, const wf_goal *g)
{
    const int64_t last[] = {-1};
    wf_value *one = wf_emit_scalar(e, g->scores->dtype, 1.0);
    wf_value *hit = wf_emit_reduce_sum(e, wf_emit_mul(e, g->labels, g->scores), 1, last, false);
    wf_value *miss = wf_emit_mul(e, wf_emit_sub(e, one, g->labels), g->scores);

    miss = miss ? largest(e, miss, wf_goal_classes(g)) : NULL;
    return wf_emit_unary(e, "Relu", wf_emit_add(e, wf_emit_sub(e, miss, hit), one));
}

const wf_loss_row wf_loss_categorical_hinge = {
    .name = "categorical_hinge",
    .kind = WF_LOSS_CATEGORICAL,
    .margin = true,
    .values = values,
};
