/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/job_data_message.h - a job's data as a part of Start. */
#ifndef WF_SESSION_JOB_DATA_MESSAGE_H
#define WF_SESSION_JOB_DATA_MESSAGE_H

#include "common/base/arena.h"
#include "common/session/job_data.h"
#include "common/wire/control.pb-c.h"

/* Makes the message in the arena, with copies of all that it names. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_job_data_put(const wf_job_data *d, wf_arena *a, Weft__JobData **out,
                                      wf_err *err);
/* Fills *out from a message that came, and borrows from it and the arena; `seed` is the job's. What
 * opening does not check is checked here. Errors: WF_PROTO for counts, ranks or numbers out of
 * bounds; WF_NOMEM. */
WF_MUST_USE wf_status wf_job_data_get(const Weft__JobData *m, uint64_t seed, wf_arena *a,
                                      wf_job_data *out, wf_err *err);

/* Has data that grows read the files of a round, in place of its patterns; borrows from the message
 * and the arena. Errors: those of wf_data_check_listed; WF_PROTO, WF_NOMEM. */
WF_MUST_USE wf_status wf_job_data_take_round(wf_job_data *d, const Weft__Round *round, wf_arena *a,
                                             wf_err *err);

#endif
