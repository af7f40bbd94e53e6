/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/metrics/precision.c - precision and recall at a threshold of the probability: how
 * many of those above it are positive, and how many of the positive are above it. */
#include "common/compile/metrics/metrics.h"

/* Scores above the threshold, and positive labels, as numbers 0 and 1. */
static wf_value *above(wf_emit *e, wf_value *x, double threshold)
{
    return x ? wf_emit_cast(e,
                            wf_emit_binary(e, "Greater", x, wf_emit_scalar(e, x->dtype, threshold)),
                            x->dtype)
             : NULL;
}

static wf_status attach_for(const wf_metric *m, bool precision, wf_err *err)
{
    wf_emit e = wf_emit_begin(m->u->graph, m->row->name, err);
    wf_value *said =
        above(&e, wf_metric_probabilities(&e, m->goal), wf_conf_number(m->item, "thresholds", 0.5));
    wf_value *is = above(&e, m->goal->labels, 0.0);
    wf_value *parts[2];

    parts[0] = wf_emit_reduce_sum(&e, wf_emit_mul(&e, said, is), 0, NULL, false);
    parts[1] = wf_emit_reduce_sum(&e, precision ? said : is, 0, NULL, false);
    return wf_metric_fetch_sums(m, &e, 2, parts, err);
}

static wf_status attach_precision(const wf_metric *m, wf_err *err)
{
    return attach_for(m, true, err);
}

static wf_status attach_recall(const wf_metric *m, wf_err *err)
{
    return attach_for(m, false, err);
}

static const wf_option_row options[] = {
    WF_LOSS_NUMBER("thresholds", 0.0, 1.0), WF_METRIC_NAME, {0}};

const wf_metric_row wf_metric_precision = {
    .name = "precision",
    .kinds = WF_METRIC_OF(WF_LOSS_BINARY) | WF_METRIC_OF(WF_LOSS_CATEGORICAL),
    .options = options,
    .attach = attach_precision,
};
const wf_metric_row wf_metric_recall = {
    .name = "recall",
    .kinds = WF_METRIC_OF(WF_LOSS_BINARY) | WF_METRIC_OF(WF_LOSS_CATEGORICAL),
    .options = options,
    .attach = attach_recall,
};
