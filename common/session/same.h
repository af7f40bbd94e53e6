/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/same.h - whether two job files describe one model, and one order of records,
 * for whoever goes on with a run. */
#ifndef WF_SESSION_SAME_H
#define WF_SESSION_SAME_H

#include "common/base/status.h"
#include "common/conf/conf.h"
#include <stdbool.h>

/* Compares what a run was trained with to what the job is now: what checkpoints belong to, so data,
 * optimizer and rates may differ. `run` is for the message. Errors: WF_MISMATCH with the first
 * difference, a variable, an operation or the loss; those of wf_compile. */
WF_MUST_USE wf_status wf_job_same_model(const wf_job_conf *before, const wf_job_conf *now,
                                        const char *run, wf_err *err);
/* Compares what decides which records there are; and, for a run that is `within` an epoch, which
 * one is at which position of it: some would be trained twice and others never. Errors: WF_MISMATCH
 * with the first key. */
WF_MUST_USE wf_status wf_job_same_order(const wf_job_conf *before, const wf_job_conf *now,
                                        bool within, const char *run, wf_err *err);
/* Whether the optimizer finds the state of each variable that it needs in checkpoints of the run.
 * Errors: WF_MISMATCH with the first that they do not have; those of wf_opt_init. */
WF_MUST_USE wf_status wf_job_same_slots(const wf_job_conf *before, const wf_job_conf *now,
                                        const char *run, wf_err *err);

#endif
