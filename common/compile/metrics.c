/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/metrics.c - metrics as sums and counts over a batch.
 *
 * A mean of means over batches would weigh a short last batch wrongly; sums and counts are exact to
 * the last example. "accuracy" means what Keras makes of it by the loss: the largest score against
 * the class for crossentropies over classes, the side of one half for the binary one.
 */
#include "common/base/nearest.h"
#include "common/compile/pass.h"
#include "common/graph/emit.h"
#include <string.h>

typedef struct metric_row {
    const char *name, *alias;
    wf_status (*attach)(wf_unit *u, const char *label, wf_err *err);
} metric_row;

/* Numbers in one record of v; 0 when that is not fixed. */
static double per_record(const wf_value *v)
{
    double n = 1.0;

    for (int32_t i = 1; i < v->rank; i++)
        n *= v->axes[i].size > 0 ? (double)v->axes[i].size : 0.0;
    return n;
}

static wf_status fetch(wf_unit *u, wf_value *v, wf_meaning meaning, const char *label, double each,
                       wf_err *err)
{
    if (!(each > 0.0))
        return wf_fail(err, WF_UNSUPPORTED, "leave the metric out, or fix the extents",
                       "metric %s: the number of values in a record is not fixed", label);
    return wf_unit_fetch(
        u, (wf_fetch){.value = v, .meaning = meaning, .label = label, .per_record = each}, err);
}

/* Rows whose largest score is at the label's class. */
static wf_status count_classes(wf_unit *u, wf_value *labels, const char *label, wf_err *err)
{
    wf_emit e = wf_emit_begin(u->graph, "accuracy", err);
    wf_value *in[2] = {u->scores, labels}, *hits;
    double each = 1.0;

    if (u->scores->rank != 2)
        return wf_fail(err, WF_UNSUPPORTED, "leave the metric out",
                       "metric %s: the scores \"%s\" have %d axes, and 2 are counted", label,
                       u->scores->name, u->scores->rank);
    /* A loss function over more axes has folded them: a record has several labels then. */
    if (u->loss_kind == WF_LOSS_SPARSE && u->label_feed && u->label_feed->rank > 1)
        each = per_record(u->label_feed);
    hits = wf_emit_op(&e, "CorrectCount", 2, in, 0, NULL);
    WF_TRY(wf_emit_end(&e));
    return fetch(u, hits, WF_MEANS_HITS, label, each, err);
}

static wf_status sparse_accuracy(wf_unit *u, const char *label, wf_err *err)
{
    return count_classes(u, u->labels, label, err);
}

static wf_status categorical_accuracy(wf_unit *u, const char *label, wf_err *err)
{
    wf_emit e = wf_emit_begin(u->graph, "accuracy", err);
    wf_attr attrs[] = {wf_attr_int("axis", -1), wf_attr_int("keepdims", 0)};
    wf_value *classes = wf_emit_op(&e, "ArgMax", 1, &u->labels, 2, attrs);

    WF_TRY(wf_emit_end(&e));
    return count_classes(u, classes, label, err);
}

static wf_status binary_accuracy(wf_unit *u, const char *label, wf_err *err)
{
    wf_emit e = wf_emit_begin(u->graph, "accuracy", err);
    wf_attr threshold = wf_attr_float("threshold", u->scores_are_logits ? 0.0f : 0.5f);
    const int64_t flat[] = {-1};
    wf_value *in[2], *hits;

    in[0] = wf_emit_reshape(&e, u->scores, 1, flat);
    in[1] = wf_emit_reshape(&e, u->labels, 1, flat);
    hits = wf_emit_op(&e, "CorrectCount", 2, in, 1, &threshold);
    WF_TRY(wf_emit_end(&e));
    return fetch(u, hits, WF_MEANS_HITS, label, per_record(u->scores), err);
}

static wf_status accuracy(wf_unit *u, const char *label, wf_err *err)
{
    switch (u->loss_kind) {
    case WF_LOSS_SPARSE:
        return sparse_accuracy(u, label, err);
    case WF_LOSS_CATEGORICAL:
        return categorical_accuracy(u, label, err);
    case WF_LOSS_BINARY:
        return binary_accuracy(u, label, err);
    case WF_LOSS_REGRESSION:
    case WF_LOSS_OTHER:
        break;
    }
    return wf_fail(err, WF_USAGE, "leave it out, or use mean_absolute_error",
                   "metric %s has no meaning for the loss \"%s\"", label,
                   u->spec->loss ? u->spec->loss : u->loss->name);
}

static wf_status difference(wf_unit *u, const char *label, bool squared, wf_err *err)
{
    wf_emit e = wf_emit_begin(u->graph, label, err);
    wf_value *d = wf_emit_sub(&e, u->scores, u->labels);

    d = squared ? wf_emit_mul(&e, d, d) : wf_emit_unary(&e, "Abs", d);
    d = wf_emit_reduce_sum(&e, d, 0, NULL, false);
    WF_TRY(wf_emit_end(&e));
    return fetch(u, d, WF_MEANS_SUM, label, per_record(u->scores), err);
}

static wf_status squared_error(wf_unit *u, const char *label, wf_err *err)
{
    return difference(u, label, true, err);
}

static wf_status absolute_error(wf_unit *u, const char *label, wf_err *err)
{
    return difference(u, label, false, err);
}

static const metric_row rows[] = {
    {"accuracy", "acc", accuracy},
    {"sparse_categorical_accuracy", NULL, sparse_accuracy},
    {"categorical_accuracy", NULL, categorical_accuracy},
    {"binary_accuracy", NULL, binary_accuracy},
    {"mean_squared_error", "mse", squared_error},
    {"mean_absolute_error", "mae", absolute_error},
};

/* Which loss a metric's row goes with; the two that mean another form of labels are refused. */
static bool fits(const wf_unit *u, const metric_row *row)
{
    if (row->attach == accuracy)
        return true;
    if (row->attach == sparse_accuracy)
        return u->loss_kind == WF_LOSS_SPARSE;
    if (row->attach == categorical_accuracy)
        return u->loss_kind == WF_LOSS_CATEGORICAL;
    if (row->attach == binary_accuracy)
        return u->loss_kind == WF_LOSS_BINARY;
    return u->loss_kind == WF_LOSS_REGRESSION;
}

static wf_status attach_one(wf_unit *u, const char *name, wf_err *err)
{
    const char *names[WF_COUNT(rows)], *near;

    for (size_t i = 0; i < WF_COUNT(rows); i++) {
        names[i] = rows[i].name;
        if (strcmp(rows[i].name, name) && (!rows[i].alias || strcmp(rows[i].alias, name)))
            continue;
        if (!u->scores || !u->labels)
            return wf_fail(err, WF_UNSUPPORTED, "leave it out, or name a loss function in the job",
                           "metric %s: what the model's own loss compares is not known", name);
        if (!fits(u, &rows[i]))
            return wf_fail(err, WF_USAGE, "use accuracy, which goes with any of them",
                           "metric %s does not go with the loss \"%s\"", name,
                           u->spec->loss ? u->spec->loss : u->loss->name);
        return rows[i].attach(u, rows[i].name, err);
    }
    near = wf_nearest(name, names, WF_COUNT(names));
    return wf_fail(err, WF_USAGE, "there are accuracy, mean_squared_error, mean_absolute_error",
                   "unknown metric \"%s\"%s%s%s", name, near ? "; did you mean \"" : "",
                   near ? near : "", near ? "\"?" : "");
}

wf_status wf_attach_metrics(wf_unit *u, wf_err *err)
{
    for (size_t i = 0; i < u->spec->n_metrics; i++)
        WF_TRY(attach_one(u, u->spec->metrics[i], err));
    return WF_OK;
}
