/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/metrics/metrics.h - the metrics, one file and row each; for this room only.
 *
 * A metric is two things that its row holds together: nodes that turn a batch into sums (attach),
 * and the number that the sums of all batches stand for (value). Between them lie workers, the wire
 * and the master, who do nothing but add (common/metrics/measure.h). Names and options are those of
 * Keras 3; examples count alike, whatever weights the loss gives them (Keras's `metrics`, not its
 * `weighted_metrics`). The name of any loss function is a metric too: the mean of its values.
 *
 * To add one: its file beside top_k.c, named in ../meson.build.
 */
#ifndef WF_COMPILE_METRICS_H
#define WF_COMPILE_METRICS_H

#include "common/compile/losses/losses.h"
#include "common/metrics/measure.h"
#include <stdint.h>

#define WF_METRIC_OF(kind) (1u << (kind)) /* of a wf_loss_kind */
#define WF_METRIC_OF_CLASSES (WF_METRIC_OF(WF_LOSS_SPARSE) | WF_METRIC_OF(WF_LOSS_CATEGORICAL))
#define WF_METRIC_OF_ANY (~0u)

typedef struct wf_metric_row wf_metric_row;

/* A metric that is being attached. */
typedef struct wf_metric {
    wf_unit *u;
    const wf_goal *goal;
    const wf_metric_row *row;
    const wf_conf_item *item;
    const char *label;
} wf_metric;

struct wf_metric_row {
    const char *name;
    const char *aliases[3];
    uint32_t kinds;               /* of losses that it goes with: WF_METRIC_OF(...) */
    const wf_option_row *options; /* ends with a NULL name; NULL: none */
    /* Emits the nodes and fetches their result. Every option has been checked. */
    wf_status (*attach)(const wf_metric *m, wf_err *err);
    /* The number that the sums stand for; NULL: sum / count, or by key sum 0 / sum 1. The sums are
     * settled. */
    double (*value)(const wf_measure *m);
};

/* The row by its name or an alias, or NULL. */
const wf_metric_row *wf_metric_find(const char *name);

/* The name of row i, NULL past the end. */
const char *wf_metric_name_at(size_t i);

/* What the rows share. */
#define WF_METRIC_NAME                                                                             \
    {                                                                                              \
        .name = "name", .kind = WF_CONF_TEXT                                                       \
    }

/* Asks for v as what the metric adds up. `row` names who knows its value, m->row mostly. With
 * WF_MEANS_SUM and WF_MEANS_HITS `like` says how many numbers count: those of a record of it. */
WF_MUST_USE wf_status wf_metric_fetch(const wf_metric *m, const char *row, wf_value *v,
                                      wf_meaning meaning, const wf_value *like, wf_err *err);
/* Of n scalars: sum i is to grow by part i. */
WF_MUST_USE wf_status wf_metric_fetch_sums(const wf_metric *m, wf_emit *e, uint32_t n,
                                           wf_value *const parts[], wf_err *err);
/* How many of the labels' places hit, out of those that count: SPARSE labels that the loss ignores
 * do not. */
WF_MUST_USE wf_status wf_metric_fetch_hits(const wf_metric *m, wf_emit *e, wf_value *hits,
                                           const wf_value *labels, wf_err *err);
/* The sum of a loss function's values over the batch, and their number. */
WF_MUST_USE wf_status wf_metric_fetch_loss(const wf_metric *m, const wf_loss_row *loss,
                                           wf_err *err);
/* The probabilities that the scores stand for. */
wf_value *wf_metric_probabilities(wf_emit *e, const wf_goal *g);
double wf_metric_ratio(double a, double b); /* a / b; 0 when b is 0, as Keras has it */

#endif
