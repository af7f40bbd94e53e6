/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/metrics/f1_score.c - 2 precision recall / (precision + recall), which is twice the
 * hits over what was said and what is (Keras's F1Score; van Rijsbergen 1979, F with beta 1).
 *
 * Of losses over classes the largest score is what was said, unless a threshold lets several
 * through; of losses over yes and no it is what is above the threshold (0.5). Each class has its
 * score; `average` makes one number of them: macro their mean, weighted their mean by how often
 * each is right, micro that of all classes together. Keras's default, a list of them, is no number:
 * here it is macro. A class that was neither said nor is right has the score 0, as there.
 *
 *   sums: 1, classes and kind of average for each batch; then hits, said and right of each class
 */
#include "common/compile/metrics/metrics.h"
#include <string.h>

enum { HEAD = 3, MOST_CLASSES = 1 << 16 };
typedef enum average { MACRO, WEIGHTED, MICRO } average;

/* 1 where x is above, else 0. */
static wf_value *above(wf_emit *e, wf_value *x, double threshold)
{
    return x ? wf_emit_cast(e,
                            wf_emit_binary(e, "Greater", x, wf_emit_scalar(e, x->dtype, threshold)),
                            WF_F64)
             : NULL;
}

/* Classes [n] as rows [n, k] with a 1 at the class, and none where it is no class. */
static wf_value *one_hot(wf_emit *e, wf_value *classes, const int64_t count[], int64_t k)
{
    const int64_t last[] = {1};
    wf_value *column = wf_emit_unsqueeze(e, classes, 1, last);

    return wf_emit_cast(e, wf_emit_binary(e, "Equal", column, wf_emit_ints(e, (uint32_t)k, count)),
                        WF_F64);
}

/* What was said of each class: rows [n, k] of 0 and 1 from scores [n, k]. */
static wf_value *said_of(const wf_metric *m, wf_emit *e, wf_value *scores, const int64_t count[],
                         int64_t k)
{
    wf_attr attrs[] = {wf_attr_int("axis", -1), wf_attr_int("keepdims", 0)};
    bool of_classes = m->goal->kind != WF_LOSS_BINARY;
    wf_goal own = *m->goal;

    if (of_classes && !wf_conf_find(m->item, "threshold"))
        return one_hot(e, scores ? wf_emit_op(e, "ArgMax", 1, &scores, 2, attrs) : NULL, count, k);
    own.scores = scores;
    if (of_classes)
        own.kind = WF_LOSS_CATEGORICAL; /* its probabilities are made with Softmax */
    return above(e, scores ? wf_metric_probabilities(e, &own) : NULL,
                 wf_conf_number(m->item, "threshold", 0.5));
}

/* Scores and what is right, both [n, k]; labels that the loss ignores have rows of zeros. */
static wf_value *right_of(const wf_metric *m, wf_emit *e, const int64_t count[], int64_t k,
                          wf_value **scores, wf_value **counts)
{
    const int64_t rows[] = {-1, k}, last[] = {1};
    wf_value *labels = NULL, *ignored;

    *counts = NULL;
    if (m->goal->kind != WF_LOSS_SPARSE) {
        *scores = wf_emit_reshape(e, m->goal->scores, 2, rows);
        return wf_emit_cast(e, wf_emit_reshape(e, m->goal->labels, 2, rows), WF_F64);
    }
    wf_goal_rows(e, m->goal, scores, &labels);
    if (m->goal->ignores && labels) {
        ignored = wf_emit_scalar(e, labels->dtype, (double)m->goal->ignored);
        *counts = wf_emit_unary(e, "Not", wf_emit_binary(e, "Equal", labels, ignored));
        *counts = wf_emit_unsqueeze(e, wf_emit_cast(e, *counts, WF_F64), 1, last);
    }
    return one_hot(e, labels, count, k);
}

static wf_value *column_sums(wf_emit *e, wf_value *x)
{
    const int64_t rows[] = {0};

    return wf_emit_reduce_sum(e, x, 1, rows, false);
}

static average average_of(const wf_metric *m)
{
    const char *name = wf_conf_text(m->item, "average", "macro");

    return strcmp(name, "micro") == 0 ? MICRO : strcmp(name, "weighted") == 0 ? WEIGHTED : MACRO;
}

static wf_status attach_classes(const wf_metric *m, const int64_t count[], int64_t k, wf_err *err)
{
    wf_emit e = wf_emit_begin(m->u->graph, "f1_score", err);
    wf_value *scores = NULL, *counts, *parts[6];
    wf_value *right = right_of(m, &e, count, k, &scores, &counts);
    wf_value *said = said_of(m, &e, scores, count, k);

    if (counts) {
        said = wf_emit_mul(&e, said, counts);
        right = wf_emit_mul(&e, right, counts);
    }
    parts[0] = wf_emit_scalar(&e, WF_F64, 1);
    parts[1] = wf_emit_scalar(&e, WF_F64, (double)k);
    parts[2] = wf_emit_scalar(&e, WF_F64, average_of(m));
    parts[3] = column_sums(&e, wf_emit_mul(&e, said, right));
    parts[4] = column_sums(&e, said);
    parts[5] = column_sums(&e, right);
    return wf_metric_fetch_sums(m, &e, 6, parts, err);
}

static wf_status attach(const wf_metric *m, wf_err *err)
{
    const wf_value *scores = m->goal->scores;
    int64_t k = m->goal->kind == WF_LOSS_SPARSE ? wf_goal_classes(m->goal)
                : scores->rank < 2              ? 1
                                                : scores->axes[scores->rank - 1].size;
    int64_t *count;

    if (k < 1 || k > MOST_CLASSES)
        return wf_fail(err, WF_UNSUPPORTED, "leave the metric out, or fix the number of classes",
                       "metric f1_score: the number of classes is not from 1 to %d", MOST_CLASSES);
    count = wf_arena_array(m->u->arena, (size_t)k, sizeof *count);
    if (!count)
        return wf_fail_nomem(err, (size_t)k * sizeof *count);
    for (int64_t i = 0; i < k; i++)
        count[i] = i;
    return attach_classes(m, count, k, err);
}

static double value(const wf_measure *m)
{
    double batches = wf_sums_get(&m->sums, 0), all = 0.0, weights = 0.0, sums[3] = {0, 0, 0};
    double classes = wf_metric_ratio(wf_sums_get(&m->sums, 1), batches);
    double kind = wf_metric_ratio(wf_sums_get(&m->sums, 2), batches);
    uint64_t k =
        classes > 0 && classes <= MOST_CLASSES ? (uint64_t)classes : 0; /* a peer says it */
    average how = kind == WEIGHTED ? WEIGHTED : kind == MICRO ? MICRO : MACRO;

    for (uint64_t i = 0; i < k; i++) {
        double c[3], weight;

        for (uint64_t p = 0; p < 3; p++) {
            c[p] = wf_sums_get(&m->sums, HEAD + p * k + i);
            sums[p] += c[p];
        }
        weight = how == WEIGHTED ? c[2] : 1.0;
        all += weight * wf_metric_ratio(2 * c[0], c[1] + c[2]);
        weights += weight;
    }
    return how == MICRO ? wf_metric_ratio(2 * sums[0], sums[1] + sums[2])
                        : wf_metric_ratio(all, weights);
}

static const char *const averages[] = {"macro", "micro", "weighted", NULL};
static const wf_option_row options[] = {
    {.name = "average", .kind = WF_CONF_TEXT, .choice = averages},
    WF_LOSS_NUMBER("threshold", 0.0, 1.0),
    WF_METRIC_NAME,
    {0}};

const wf_metric_row wf_metric_f1_score = {
    .name = "f1_score",
    .aliases = {"f1"},
    .kinds = WF_METRIC_OF_CLASSES | WF_METRIC_OF(WF_LOSS_BINARY),
    .options = options,
    .attach = attach,
    .value = value,
};
