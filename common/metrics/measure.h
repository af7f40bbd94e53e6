/* SPDX-License-Identifier: Apache-2.0 */
/* common/metrics/measure.h - the front door of common/metrics: what is measured, as sums that
 * merge.
 *
 * A measure is all that a metric needs to know of the examples it has seen: sums. Those of two
 * batches, splits or workers are added, and the metric's value is computed once, of the whole: a
 * mean of means would weigh a short last batch wrongly, and an area under a curve has no mean at
 * all. Most metrics need `sum` and `count`; others have sums by key, of which only those that are
 * not zero are kept (a histogram of 16 million bins has as many entries as bins that were hit).
 */
#ifndef WF_METRICS_MEASURE_H
#define WF_METRICS_MEASURE_H

#include "common/base/bytes.h"
#include "common/base/status.h"
#include <stddef.h>
#include <stdint.h>

enum {
    WF_MEASURE_NAME = 64,
    WF_MEASURES_MOST = 64,    /* the loss and the metrics of a job */
    WF_MEASURE_MOST = 1 << 23 /* sums by key in one measure; what a peer says is held to it too */
};

typedef struct wf_keyed_sum {
    uint64_t key;
    double value;
} wf_keyed_sum;

/* Sums by key; a zeroed one is empty. */
typedef struct wf_sums {
    wf_keyed_sum *at; /* [n]; after wf_sums_settle keys ascend and none comes twice */
    size_t n, room;
    size_t settled; /* the first so many are */
} wf_sums;

/* Adds value to the sum of a key. Errors: WF_NOMEM; WF_FULL past WF_MEASURE_MOST. */
WF_MUST_USE wf_status wf_sums_add(wf_sums *s, uint64_t key, double value, wf_err *err);
/* Brings the sums into order. */
void wf_sums_settle(wf_sums *s);
/* The sum of a key, 0 when it has none; s is settled. */
double wf_sums_get(const wf_sums *s, uint64_t key);
/* Forgets all sums and keeps the memory. */
void wf_sums_clear(wf_sums *s);
void wf_sums_close(wf_sums *s);

/* Appends the sums, settled, to `out`: keys as steps, counts as varints; out->failed when there is
 * no memory. */
void wf_sums_encode(wf_sums *s, wf_bytes *out);
/* Adds sums that a peer encoded. Errors: WF_PROTO: cut short, keys that do not ascend, too many, a
 * value that is not finite; WF_NOMEM, WF_FULL. */
WF_MUST_USE wf_status wf_sums_decode(wf_sums *s, const void *data, size_t size, wf_err *err);

typedef struct wf_measure {
    char name[WF_MEASURE_NAME];   /* as people see it: "out_a_auc" */
    char metric[WF_MEASURE_NAME]; /* the row that knows what the sums mean; "": their mean */
    double sum, count;
    wf_sums sums;
} wf_measure;

/* Adds `from` to `to`, which keeps its name. Errors: as wf_sums_add. */
WF_MUST_USE wf_status wf_measure_merge(wf_measure *to, const wf_measure *from, wf_err *err);
void wf_measures_close(wf_measure m[], size_t n);

#endif
