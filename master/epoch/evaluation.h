/* SPDX-License-Identifier: Apache-2.0 */
/* master/epoch/evaluation.h - the end of an epoch: its evaluation is dealt to all workers, in
 * units.
 *
 * Nothing is pushed between two epochs, so all workers pull the same weights. A unit is a fixed
 * number of batches, whatever the number of workers, and the sums of units are added in their
 * order: the result does not depend on who evaluated what, or when. How many records there are is
 * known with the first unit of a job, which goes out alone.
 */
#ifndef WF_MASTER_EPOCH_EVALUATION_H
#define WF_MASTER_EPOCH_EVALUATION_H

#include "common/metrics/measure.h"
#include "master/epoch/ledger.h"
#include "master/job/job.h"

typedef struct wf_evaluation {
    wf_ledger units;          /* n == 0: none is under way */
    Weft__EvalResult **early; /* [units.n]: results whose turn has not come */
    uint64_t merged;          /* so many units are in the measures */
    wf_measure measures[WF_MASTER_METRICS];
    uint32_t n_measures;
} wf_evaluation;

/* How an evaluation has ended: with the measures, or as `failed` says. */
typedef struct wf_evaluation_end {
    bool over;
    char failed[256];
} wf_evaluation_end;

/* Deals units to workers that have none; the first call begins them. */
WF_MUST_USE wf_status wf_evaluation_advance(wf_master *m, wf_job *j, wf_evaluation_end *end,
                                            wf_err *err);
WF_MUST_USE wf_status wf_evaluation_on_result(wf_master *m, wf_job *j, wf_member *who,
                                              const wf_msg *msg, wf_evaluation_end *end,
                                              wf_err *err);
/* What a worker had of it is dealt again. */
void wf_evaluation_lost(wf_job *j, const wf_member *who);
/* Whether a worker has a part of it in hand. */
bool wf_evaluation_asks(const wf_job *j, const wf_member *who);
void wf_evaluation_close(wf_evaluation *e);

#endif
