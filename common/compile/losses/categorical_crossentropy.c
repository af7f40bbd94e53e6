/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/losses/categorical_crossentropy.c - -sum(y log p), labels weights of classes. */
#include "common/compile/losses/losses.h"

static wf_value *values(wf_emit *e, const wf_goal *g)
{
    const int64_t last[] = {-1};
    wf_attr axis = wf_attr_int("axis", -1);
    wf_value *scores = g->scores, *logs, *y;

    y = wf_loss_smoothed(e, g, 1.0 / (double)wf_goal_classes(g));
    logs = g->scores_are_logits ? wf_emit_op(e, "LogSoftmax", 1, &scores, 1, &axis)
                                : wf_emit_log(e, wf_loss_class_probabilities(e, scores));
    return wf_emit_neg(e, wf_emit_reduce_sum(e, wf_emit_mul(e, y, logs), 1, last, false));
}

static const wf_option_row options[] = {
    WF_LOSS_FROM_LOGITS, WF_LOSS_NUMBER("label_smoothing", 0.0, 1.0), {0}};

const wf_loss_row wf_loss_categorical_crossentropy = {
    .name = "categorical_crossentropy",
    .kind = WF_LOSS_CATEGORICAL,
    .activation = "Softmax",
    .options = options,
    .values = values,
};
