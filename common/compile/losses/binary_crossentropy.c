/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/losses/binary_crossentropy.c - -(y log p + (1 - y) log(1 - p)) of each number. */
#include "common/compile/losses/losses.h"

static wf_value *mean(wf_emit *e, const wf_goal *g)
{
    wf_value *in[2] = {g->scores, wf_loss_smoothed(e, g, 0.5)};

    return g->scores_are_logits ? wf_emit_op(e, "SigmoidCrossEntropy", 2, in, 0, NULL) : NULL;
}

static const wf_option_row options[] = {
    WF_LOSS_FROM_LOGITS, WF_LOSS_NUMBER("label_smoothing", 0.0, 1.0), {0}};

const wf_loss_row wf_loss_binary_crossentropy = {
    .name = "binary_crossentropy",
    .aliases = {"bce"},
    .kind = WF_LOSS_BINARY,
    .activation = "Sigmoid",
    .options = options,
    .values = wf_loss_binary_values,
    .mean = mean,
};
