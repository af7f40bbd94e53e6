/* SPDX-License-Identifier: Apache-2.0 */
/* master/epoch/returned.h - what becomes of the splits that a lost worker had in hand: people ask
 * whether its records are trained. */
#ifndef WF_MASTER_EPOCH_RETURNED_H
#define WF_MASTER_EPOCH_RETURNED_H

#include "master/job/job.h"

/* Notes what the worker has in hand of the job; before its lease ends. */
void wf_returned_note(wf_master *m, const wf_job *j, wf_member *who);
/* A split was given to a worker: perhaps it is one of those. */
void wf_returned_dealt(wf_master *m, const wf_job *j, uint64_t id, wf_task to);
/* "; its 2 splits (records 40000 to 42000) are given out again", or "" when it had none. */
const char *wf_returned_text(const wf_member *who, char *text, size_t size);

#endif
