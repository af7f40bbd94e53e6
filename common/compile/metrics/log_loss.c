/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/metrics/log_loss.c - the crossentropy that goes with the labels, whatever the loss
 * is smoothed, weighted or focused by; and perplexity, its exponential. */
#include "common/compile/metrics/metrics.h"
#include <math.h>

static wf_status attach(const wf_metric *m, wf_err *err)
{
    const char *name = m->goal->kind == WF_LOSS_SPARSE        ? "sparse_categorical_crossentropy"
                       : m->goal->kind == WF_LOSS_CATEGORICAL ? "categorical_crossentropy"
                                                              : "binary_crossentropy";

    return wf_metric_fetch_loss(m, wf_loss_find(name), err);
}

static double perplexity(const wf_measure *m)
{
    bool keyed = m->sums.n > 0;

    return exp(keyed ? wf_metric_ratio(wf_sums_get(&m->sums, 0), wf_sums_get(&m->sums, 1))
                     : wf_metric_ratio(m->sum, m->count));
}

static const wf_option_row options[] = {WF_METRIC_NAME, {0}};

const wf_metric_row wf_metric_log_loss = {
    .name = "log_loss",
    .aliases = {"logloss"},
    .kinds = WF_METRIC_OF_CLASSES | WF_METRIC_OF(WF_LOSS_BINARY),
    .options = options,
    .attach = attach,
};
const wf_metric_row wf_metric_perplexity = {
    .name = "perplexity",
    .kinds = WF_METRIC_OF_CLASSES,
    .options = options,
    .attach = attach,
    .value = perplexity,
};
