/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/losses/sparse_categorical_crossentropy.c - -log p of the label's class. Labels of
 * the class ignore_class (or ignore_index, PyTorch's word for it) have no value, and the mean is
 * over the others. */
#include "common/compile/losses/losses.h"

static wf_value *attach(wf_emit *e, const wf_goal *g, bool mean)
{
    wf_attr attrs[2] = {wf_attr_string("reduction", mean ? "mean" : "none"),
                        wf_attr_int("ignore_index", g->ignored)};
    const wf_attr *first = mean ? attrs + 1 : attrs;
    uint32_t n_attrs = (uint32_t)!mean + (uint32_t)g->ignores;
    wf_value *in[2], *v;

    wf_goal_rows(e, g, &in[0], &in[1]);
    if (g->scores_are_logits) {
        v = wf_emit_op(e, "SoftmaxCrossEntropyLoss", 2, in, n_attrs, first);
    } else {
        in[0] = wf_emit_log(e, wf_loss_class_probabilities(e, in[0]));
        v = wf_emit_op(e, "NegativeLogLikelihoodLoss", 2, in, n_attrs, first);
    }
    return mean ? v : wf_emit_reshape_like(e, v, g->labels);
}

static wf_value *values(wf_emit *e, const wf_goal *g)
{
    return attach(e, g, false);
}

static wf_value *mean(wf_emit *e, const wf_goal *g)
{
    /* ONNX divides by the number of labels that count, and knows no batch without any. */
    return g->ignores ? NULL : attach(e, g, true);
}

static const wf_option_row options[] = {
    WF_LOSS_FROM_LOGITS,
    {.name = "ignore_class", .kind = WF_CONF_INT, .least = -2147483648.0, .most = 2147483647.0},
    {.name = "ignore_index", .kind = WF_CONF_INT, .least = -2147483648.0, .most = 2147483647.0},
    {0},
};

const wf_loss_row wf_loss_sparse_categorical_crossentropy = {
    .name = "sparse_categorical_crossentropy",
    .kind = WF_LOSS_SPARSE,
    .activation = "Softmax",
    .options = options,
    .values = values,
    .mean = mean,
};
