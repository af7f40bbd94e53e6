/* SPDX-License-Identifier: Apache-2.0 */
/* master/epoch/tally.c */
#include "master/epoch/tally.h"
#include "common/compile/compile.h"

#include <stdio.h>

void wf_tally_keep(wf_tally *t, wf_measure *m)
{
    snprintf(t->name, sizeof t->name, "%s", m->name);
    if (!wf_metric_mean(m, &t->sum, &t->count)) {
        t->sum = wf_metric_value(m);
        t->count = 1;
    }
}

/* What one message says of a metric. */
static wf_status take_metric(wf_tally *t, const Weft__Metric *from, wf_err *err)
{
    wf_measure m = {.sum = from->sum, .count = from->count};
    wf_status rc = WF_OK;

    snprintf(m.name, sizeof m.name, "%s", from->name);
    snprintf(m.metric, sizeof m.metric, "%s", from->metric);
    if (from->sums.len)
        rc = wf_sums_decode(&m.sums, from->sums.data, from->sums.len, err);
    if (rc == WF_OK)
        wf_tally_keep(t, &m);
    wf_sums_close(&m.sums);
    return rc;
}

wf_status wf_tallies_take(wf_tally to[], uint32_t *n, size_t count, Weft__Metric *const from[],
                          wf_err *err)
{
    *n = 0;
    for (size_t i = 0; i < count && *n < WF_MASTER_METRICS; i++) {
        WF_TRY(take_metric(&to[*n], from[i], err));
        ++*n;
    }
    return WF_OK;
}
