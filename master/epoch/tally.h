/* SPDX-License-Identifier: Apache-2.0 */
/* master/epoch/tally.h - metrics worked out: what people see of them. */
#ifndef WF_MASTER_EPOCH_TALLY_H
#define WF_MASTER_EPOCH_TALLY_H

#include "common/metrics/measure.h"
#include "common/wire/control.pb-c.h"
#include "master/core/core.h"

typedef struct wf_tally {
    char name[64];
    double sum, count;
} wf_tally;

/* A value that is no mean stands as a mean of itself. */
void wf_tally_keep(wf_tally *t, wf_measure *m);
/* The metrics of a message, WF_MASTER_METRICS at most. Errors: WF_PROTO. */
WF_MUST_USE wf_status wf_tallies_take(wf_tally to[], uint32_t *n, size_t count,
                                      Weft__Metric *const from[], wf_err *err);
/* Adds the metrics of a message to a list of measures [*n], by name; what is more than
 * WF_MASTER_METRICS is left out. Errors: WF_PROTO, WF_NOMEM, WF_FULL. */
WF_MUST_USE wf_status wf_measures_take(wf_measure list[], uint32_t *n, Weft__Metric *const from[],
                                       size_t count, wf_err *err);
static inline double wf_tally_mean(const wf_tally *t, double of_none)
{
    return t->count > 0 ? t->sum / t->count : of_none;
}

#endif
