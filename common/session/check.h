/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/check.h - what can be wrong with a job is said before anything is started for it.
 */
#ifndef WF_SESSION_CHECK_H
#define WF_SESSION_CHECK_H

#include "common/base/status.h"
#include "common/conf/conf.h"

/* Compiles the model, telling `warn` (or NULL) what the compiler warns of, and looks at optimizer,
 * strategy and the files of its data. Errors: theirs. */
WF_MUST_USE wf_status wf_job_check(const wf_job_conf *job,
                                   void (*warn)(void *arg, const char *sentence), void *arg,
                                   wf_err *err);

#endif
