/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/metrics/r2_score.c - 1 - sum (y - p)^2 / sum (y - mean y)^2, for each number of a
 * record by itself, and then their mean (Keras's class_aggregation "uniform_average"). Sums are
 * taken in f64: the variance is the small difference of two of them. */
#include "common/compile/metrics/metrics.h"

/* [k], summed over the batch; records of more axes are laid out flat. */
static wf_value *sums_of(wf_emit *e, wf_value *x, int64_t k)
{
    const int64_t batch[] = {0};

    return wf_emit_reduce_sum(e, wf_emit_reshape(e, x, 2, (const int64_t[]){-1, k}), 1, batch,
                              false);
}

static wf_status attach(const wf_metric *m, wf_err *err)
{
    wf_emit e = wf_emit_begin(m->u->graph, "r2_score", err);
    wf_value *y = wf_emit_cast(&e, m->goal->labels, WF_F64);
    wf_value *d = wf_emit_sub(&e, y, wf_emit_cast(&e, m->goal->scores, WF_F64));
    wf_value *parts[3];
    int64_t k = 1;

    for (int32_t i = 1; i < m->goal->scores->rank; i++) {
        if (m->goal->scores->axes[i].size < 1)
            return wf_fail(err, WF_UNSUPPORTED, "leave the metric out, or fix the extents",
                           "metric r2_score: the number of values in a record is not fixed");
        k *= m->goal->scores->axes[i].size;
    }
    parts[0] = sums_of(&e, y, k);
    parts[1] = sums_of(&e, wf_emit_mul(&e, y, y), k);
    parts[2] = sums_of(&e, wf_emit_mul(&e, d, d), k);
    return wf_metric_fetch_sums(m, &e, 3, parts, err);
}

/* sums: k of y, k of y^2, k of (y - p)^2; count is the number of records */
static double value(const wf_measure *m)
{
    size_t k = m->sums.n / 3;
    double all = 0.0;

    for (size_t i = 0; i < k && m->count > 0; i++) {
        double y = m->sums.at[i].value, squares = m->sums.at[k + i].value;
        double spread = squares - y * y / m->count;

        all += spread > 0 ? 1.0 - m->sums.at[2 * k + i].value / spread : 0.0;
    }
    return k ? all / (double)k : 0.0;
}

static const wf_option_row options[] = {WF_METRIC_NAME, {0}};

const wf_metric_row wf_metric_r2_score = {
    .name = "r2_score",
    .aliases = {"r2"},
    .kinds = WF_METRIC_OF(WF_LOSS_REGRESSION),
    .options = options,
    .attach = attach,
    .value = value,
};
