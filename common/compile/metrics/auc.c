/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/metrics/auc.c - the area under the ROC or the precision-recall curve.
 *
 * Scores are counted in bins, by class (ai.weft ScoreKeys): the sums of two workers or batches add
 * up to those of all examples, and nothing is sampled. A bin is as wide as 1/32768 of its logit's
 * power of two, so that it is as fine for probabilities of 1e-9, or of 1 - 1e-7, as for those near
 * one half; examples in one bin count as ties. tests/unit/compile_metrics.c holds both areas
 * against the exact ones.
 *
 *   ROC  the chance that a positive example has the higher score, ties counting half
 *   PR   average precision: the sum over thresholds of precision times the recall gained, which is
 *        scikit-learn's average_precision_score
 *
 * With labels of one class alone neither means anything: 0, as in Keras.
 */
#include "common/compile/metrics/metrics.h"
#include <string.h>

static wf_status attach(const wf_metric *m, wf_err *err)
{
    wf_emit e = wf_emit_begin(m->u->graph, "auc", err);
    bool pr = !strcmp(wf_conf_text(m->item, "curve", "ROC"), "PR");
    bool logits = m->goal->kind == WF_LOSS_BINARY && m->goal->scores_are_logits;
    wf_attr attr = wf_attr_int("logits", logits);
    wf_value *in[2], *keys;

    in[0] = logits ? m->goal->scores : wf_metric_probabilities(&e, m->goal);
    in[1] = m->goal->labels;
    keys = wf_emit_op(&e, "ScoreKeys", 2, in, 1, &attr);
    WF_TRY(wf_emit_end(&e));
    return wf_metric_fetch(m, pr ? "pr_auc" : "auc", keys, WF_MEANS_KEYS, NULL, err);
}

/* A bin's examples: entry i and perhaps the next one; keys are twice the bin, plus the class. */
static size_t take_bin(const wf_sums *s, size_t i, double count[2])
{
    uint64_t bin = s->at[i].key / 2;

    count[0] = count[1] = 0.0;
    for (; i < s->n && s->at[i].key / 2 == bin; i++)
        count[s->at[i].key % 2] += s->at[i].value;
    return i;
}

/* Each positive example is above all negative ones before its bin, and above half of those in it.
 */
static double roc(const wf_measure *m)
{
    double count[2], below[2] = {0, 0}, won = 0.0;

    for (size_t i = 0; i < m->sums.n;) {
        i = take_bin(&m->sums, i, count);
        won += count[1] * (below[0] + count[0] / 2);
        below[0] += count[0];
        below[1] += count[1];
    }
    return wf_metric_ratio(won, below[0] * below[1]);
}

static double pr(const wf_measure *m)
{
    double count[2], left[2] = {0, 0}, all, area = 0.0;

    for (size_t i = 0; i < m->sums.n; i++)
        left[m->sums.at[i].key % 2] += m->sums.at[i].value;
    all = left[1];
    if (left[0] == 0.0)
        return 0.0;
    /* From the lowest threshold up: what is left is what the threshold lets through. */
    for (size_t i = 0; i < m->sums.n;) {
        i = take_bin(&m->sums, i, count);
        area += count[1] * wf_metric_ratio(left[1], left[0] + left[1]);
        left[0] -= count[0];
        left[1] -= count[1];
    }
    return wf_metric_ratio(area, all);
}

static const char *const curves[] = {"ROC", "PR", NULL};
static const wf_option_row options[] = {
    {.name = "curve", .kind = WF_CONF_TEXT, .choice = curves}, WF_METRIC_NAME, {0}};
static const wf_option_row name_only[] = {WF_METRIC_NAME, {0}};

static wf_status attach_pr(const wf_metric *m, wf_err *err)
{
    static const wf_conf_option curve = {.name = "curve", .kind = WF_CONF_TEXT, .text = "PR"};
    static const wf_conf_item item = {.type = "auc", .options = &curve, .n_options = 1};
    wf_metric own = *m;

    own.item = &item;
    return attach(&own, err);
}

const wf_metric_row wf_metric_auc = {
    .name = "auc",
    .aliases = {"roc_auc"},
    .kinds = WF_METRIC_OF(WF_LOSS_BINARY) | WF_METRIC_OF(WF_LOSS_CATEGORICAL),
    .options = options,
    .attach = attach,
    .value = roc,
};
const wf_metric_row wf_metric_pr_auc = {
    .name = "pr_auc",
    .aliases = {"average_precision"},
    .kinds = WF_METRIC_OF(WF_LOSS_BINARY) | WF_METRIC_OF(WF_LOSS_CATEGORICAL),
    .options = name_only,
    .attach = attach_pr,
    .value = pr,
};
