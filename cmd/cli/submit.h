/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/submit.h - a job file handed to the master. */
#ifndef WF_CMD_CLI_SUBMIT_H
#define WF_CMD_CLI_SUBMIT_H

#include "cmd/cli/ask.h"
#include "common/base/bytes.h"
#include "common/base/status.h"
#include "common/conf/conf.h"
#include <stdbool.h>

/* A job file that has been checked here, where errors can name its lines. */
typedef struct wf_submission {
    wf_job_conf *job;
    wf_bytes text;
    const char *path; /* borrowed */
} wf_submission;

/* Reads and checks the file: its words, its optimizer, that its model compiles, that its data files
 * exist. Prints the compiler's warnings. Needs no cluster. The caller closes *s, also after an
 * error. */
WF_MUST_USE wf_status wf_submission_open(const char *path, wf_submission *s, wf_err *err);
void wf_submission_close(wf_submission *s);
/* Hands it to the master, and keeps a copy under the state folder. Errors: what the master answers.
 */
WF_MUST_USE wf_status wf_submit(const wf_cluster_conf *conf, wf_ask *a, const wf_submission *s,
                                bool resume, wf_err *err);

#endif
