/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/metrics/top_k.c - how many labels are among the k largest scores. */
#include "common/compile/metrics/metrics.h"

static wf_status attach(const wf_metric *m, wf_err *err)
{
    wf_emit e = wf_emit_begin(m->u->graph, "top_k", err);
    wf_attr k = wf_attr_int("k", (int64_t)wf_conf_number(m->item, "k", 5.0));
    wf_attr attrs[] = {wf_attr_int("axis", -1), wf_attr_int("keepdims", 0)};
    wf_value *in[2] = {NULL, NULL};
    wf_goal own = *m->goal;

    if (own.kind == WF_LOSS_CATEGORICAL)
        own.labels = wf_emit_op(&e, "ArgMax", 1, &own.labels, 2, attrs);
    if (own.labels)
        wf_goal_rows(&e, &own, &in[0], &in[1]);
    return wf_metric_fetch_hits(m, &e, wf_emit_op(&e, "CorrectCount", 2, in, 1, &k), own.labels,
                                err);
}

static const wf_option_row options[] = {
    {.name = "k", .kind = WF_CONF_INT, .least = 1, .most = 1 << 24}, WF_METRIC_NAME, {0}};

const wf_metric_row wf_metric_sparse_top_k_categorical_accuracy = {
    .name = "sparse_top_k_categorical_accuracy",
    .kinds = WF_METRIC_OF(WF_LOSS_SPARSE),
    .options = options,
    .attach = attach,
};
const wf_metric_row wf_metric_top_k_categorical_accuracy = {
    .name = "top_k_categorical_accuracy",
    .aliases = {"top_k_accuracy"},
    .kinds = WF_METRIC_OF_CLASSES,
    .options = options,
    .attach = attach,
};
