/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/metrics/accuracy.c - how many labels are hit. "accuracy" means what Keras makes of
 * it by the loss: the largest score against the class for losses over classes, the side of one half
 * for binary ones. */
#include "common/compile/metrics/metrics.h"
#include <math.h>

static wf_status of_rows(const wf_metric *m, wf_emit *e, wf_value *scores, wf_value *classes,
                         const wf_value *places, wf_err *err)
{
    wf_value *in[2] = {scores, classes};

    return wf_metric_fetch_hits(m, e, wf_emit_op(e, "CorrectCount", 2, in, 0, NULL), places, err);
}

static wf_status sparse(const wf_metric *m, wf_err *err)
{
    wf_emit e = wf_emit_begin(m->u->graph, "accuracy", err);
    wf_value *scores = NULL, *labels = NULL;

    wf_goal_rows(&e, m->goal, &scores, &labels);
    return of_rows(m, &e, scores, labels, m->goal->labels, err);
}

static wf_status categorical(const wf_metric *m, wf_err *err)
{
    wf_emit e = wf_emit_begin(m->u->graph, "accuracy", err);
    wf_attr attrs[] = {wf_attr_int("axis", -1), wf_attr_int("keepdims", 0)};
    wf_value *labels = m->goal->labels, *scores = NULL, *rows = NULL, *classes;
    wf_goal own = *m->goal;

    classes = wf_emit_op(&e, "ArgMax", 1, &labels, 2, attrs);
    own.labels = classes;
    if (classes)
        wf_goal_rows(&e, &own, &scores, &rows);
    return of_rows(m, &e, scores, rows, classes, err);
}

static wf_status binary(const wf_metric *m, wf_err *err)
{
    wf_emit e = wf_emit_begin(m->u->graph, "accuracy", err);
    double border = wf_conf_number(m->item, "threshold", 0.5);
    const int64_t flat[] = {-1};
    wf_value *in[2];
    wf_attr threshold;

    /* The logit of the threshold. */
    border = m->goal->scores_are_logits ? log(border / (1.0 - border)) : border;
    threshold = wf_attr_float("threshold", (float)border);
    in[0] = wf_emit_reshape(&e, m->goal->scores, 1, flat);
    in[1] = wf_emit_reshape(&e, m->goal->labels, 1, flat);
    return wf_metric_fetch_hits(m, &e, wf_emit_op(&e, "CorrectCount", 2, in, 1, &threshold),
                                m->goal->scores, err);
}

static wf_status by_loss(const wf_metric *m, wf_err *err)
{
    if (m->goal->kind == WF_LOSS_BINARY)
        return binary(m, err);
    return m->goal->kind == WF_LOSS_SPARSE ? sparse(m, err) : categorical(m, err);
}

static const wf_option_row name_only[] = {WF_METRIC_NAME, {0}};
static const wf_option_row binary_options[] = {
    WF_LOSS_NUMBER("threshold", 1e-6, 0.999999), WF_METRIC_NAME, {0}};

const wf_metric_row wf_metric_accuracy = {
    .name = "accuracy",
    .aliases = {"acc"},
    .kinds = WF_METRIC_OF_CLASSES | WF_METRIC_OF(WF_LOSS_BINARY),
    .options = name_only,
    .attach = by_loss,
};
const wf_metric_row wf_metric_binary_accuracy = {
    .name = "binary_accuracy",
    .kinds = WF_METRIC_OF(WF_LOSS_BINARY),
    .options = binary_options,
    .attach = binary,
};
const wf_metric_row wf_metric_categorical_accuracy = {
    .name = "categorical_accuracy",
    .kinds = WF_METRIC_OF(WF_LOSS_CATEGORICAL),
    .options = name_only,
    .attach = categorical,
};
const wf_metric_row wf_metric_sparse_categorical_accuracy = {
    .name = "sparse_categorical_accuracy",
    .kinds = WF_METRIC_OF(WF_LOSS_SPARSE),
    .options = name_only,
    .attach = sparse,
};
