/* SPDX-License-Identifier: Apache-2.0 */
/* master/epoch/tally.c */
#include "master/epoch/tally.h"
#include "common/compile/compile.h"

#include <stdio.h>
#include <string.h>

void wf_tally_keep(wf_tally *t, wf_measure *m)
{
    snprintf(t->name, sizeof t->name, "%s", m->name);
    if (!wf_metric_mean(m, &t->sum, &t->count)) {
        t->sum = wf_metric_value(m);
        t->count = 1;
    }
}

/* What one message says of a metric, as it was worked out by a master before. */
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

static wf_status merge_metric(wf_measure list[], uint32_t *n, const Weft__Metric *from, wf_err *err)
{
    wf_measure m = {.sum = from->sum, .count = from->count}, *to = NULL;
    wf_status rc = WF_OK;

    snprintf(m.name, sizeof m.name, "%s", from->name);
    snprintf(m.metric, sizeof m.metric, "%s", from->metric);
    for (uint32_t i = 0; i < *n && !to; i++)
        if (strcmp(list[i].name, m.name) == 0)
            to = &list[i];
    if (!to && *n == WF_MASTER_METRICS)
        return WF_OK;
    if (!to) {
        to = &list[(*n)++];
        *to = (wf_measure){0};
        memcpy(to->name, m.name, sizeof to->name);
        memcpy(to->metric, m.metric, sizeof to->metric);
    }
    if (from->sums.len)
        rc = wf_sums_decode(&m.sums, from->sums.data, from->sums.len, err);
    if (rc == WF_OK)
        rc = wf_measure_merge(to, &m, err);
    wf_sums_close(&m.sums);
    return rc;
}

wf_status wf_measures_take(wf_measure list[], uint32_t *n, Weft__Metric *const from[], size_t count,
                           wf_err *err)
{
    for (size_t i = 0; i < count; i++)
        WF_TRY(merge_metric(list, n, from[i], err));
    return WF_OK;
}
