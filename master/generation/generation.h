/* SPDX-License-Identifier: Apache-2.0 */
/* master/generation/generation.h - a generation is given out: the ps are set up with its values,
 * and then the workers start. */
#ifndef WF_MASTER_GENERATION_GENERATION_H
#define WF_MASTER_GENERATION_GENERATION_H

#include "master/job/job.h"

/* Whether what was compiled is of this job, and messages can carry it: said now, to whoever
 * submitted it. Errors: WF_USAGE, WF_FULL. */
WF_MUST_USE wf_status wf_generation_check(const wf_job *j, wf_err *err);
/* Sends all ps their set-up: with the first values, or with the checkpoint of a step. `rate` is the
 * learning rate that a callback has chosen; 0: that of the job file. */
WF_MUST_USE wf_status wf_generation_set_up(wf_master *m, wf_job *j, bool initial, uint64_t step,
                                           double rate, wf_err *err);
/* M4: a worker starts once every ps has set the generation up and has the view that holds it.
 * Without ps it joins those that have started. `rate` as in wf_generation_set_up. */
WF_MUST_USE wf_status wf_generation_start(wf_master *m, wf_job *j, double rate, wf_err *err);
/* Without ps: tells the newest view to the workers that have the variables, who are its members.
 * Each is told again after it has registered. */
WF_MUST_USE wf_status wf_generation_tell(wf_master *m, wf_job *j, wf_err *err);
/* Whether a worker is not started any more in the generation in hand, since it failed too often. */
bool wf_generation_is_barred(const wf_member *who, const wf_job *j);

#endif
