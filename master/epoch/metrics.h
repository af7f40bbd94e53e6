/* SPDX-License-Identifier: Apache-2.0 */
/* master/epoch/metrics.h - what was measured in an epoch, by its training and by the evaluation at
 * its end. */
#ifndef WF_MASTER_EPOCH_METRICS_H
#define WF_MASTER_EPOCH_METRICS_H

#include "master/epoch/epoch.h"

/* What was heard of the training of the open epoch is no more. */
void wf_epoch_forget_trained(wf_epoch *e);
/* Metrics of training since the epoch began, or of the epoch before until there are any, to
 * [WF_MASTER_METRICS]; returns how many. */
uint32_t wf_epoch_trained(wf_job *j, wf_tally to[]);
/* What a checkpoint keeps of the last evaluation, as options of a message; names have room for
 * WF_MASTER_METRICS + 1. Returns how many. */
typedef struct wf_epoch_numbers {
    char names[WF_MASTER_METRICS + 1][80];
    Weft__Option rows[WF_MASTER_METRICS + 1], *list[WF_MASTER_METRICS + 1];
} wf_epoch_numbers;
size_t wf_epoch_metrics(const wf_job *j, wf_epoch_numbers *to);
/* Of a checkpoint that the job goes back to: the metrics are of its weights from here on. Those of
 * the same evaluation stay, whose counts are known. */
void wf_epoch_restore_metrics(wf_epoch *e, const Weft__Ledger *l);
/* An epoch is over: a line for people, and its numbers for programs. `failed`: why its evaluation
 * did not come to an end; else empty. */
void wf_epoch_tell(wf_master *m, wf_job *j, const char *failed);

#endif
