/* SPDX-License-Identifier: Apache-2.0 */
/* master/epoch/left_out.h - splits that are left out. `on_nan: rollback`: a step that made NaN
 * sends the job back to its newest checkpoint, without the split that the step was of. And a split
 * with which workers die again and again is not dealt any more.
 *
 * The same records on the same weights would make the same NaN again, so that split is left out: it
 * counts as done in the ledger, and therefore in the journal and in every later checkpoint, and is
 * reported. Where it was not the split's fault (weights that run away), the next one follows soon;
 * so there is a bound on going back without having come any further.
 */
#ifndef WF_MASTER_EPOCH_LEFT_OUT_H
#define WF_MASTER_EPOCH_LEFT_OUT_H

#include "master/job/job.h"

/* A step of `split` (NULL: not known) made NaN, as `why` says. True when the job is to go back: the
 * split is noted, and people are told. False when it is to fail, and *why says if it had gone back
 * in vain. */
bool wf_left_out_roll_back(wf_master *m, wf_job *j, const Weft__Split *split, wf_err *why);
/* Splits that have killed too many are left out. False when the job is to fail: it is not the
 * splits, as *why says. */
bool wf_left_out_set_aside(wf_master *m, wf_job *j, const char *death, wf_err *why);
/* The splits to be left out of an epoch that begins or is restored count as done. */
void wf_left_out_apply(wf_job *j);
/* Of data that grows: later rounds than that of `epoch` will be of other records. */
void wf_left_out_forget_later(wf_job *j, uint32_t epoch);
/* The list as the journal has it. */
void wf_left_out_replay(wf_job *j, const Weft__JobRecord *r);

#endif
