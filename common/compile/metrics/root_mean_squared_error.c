/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/metrics/root_mean_squared_error.c - the root of the mean over all examples, which
 * is no mean of roots. */
#include "common/compile/metrics/metrics.h"
#include <math.h>

static wf_status attach(const wf_metric *m, wf_err *err)
{
    return wf_metric_fetch_loss(m, wf_loss_find("mean_squared_error"), err);
}

static double value(const wf_measure *m)
{
    if (m->sums.n)
        return sqrt(wf_metric_ratio(wf_sums_get(&m->sums, 0), wf_sums_get(&m->sums, 1)));
    return sqrt(wf_metric_ratio(m->sum, m->count));
}

static const wf_option_row options[] = {WF_METRIC_NAME, {0}};

const wf_metric_row wf_metric_root_mean_squared_error = {
    .name = "root_mean_squared_error",
    .aliases = {"rmse"},
    .kinds = WF_METRIC_OF(WF_LOSS_REGRESSION),
    .options = options,
    .attach = attach,
    .value = value,
};
