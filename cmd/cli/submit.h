/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/submit.h - a job file handed to the master. */
#ifndef WF_CMD_CLI_SUBMIT_H
#define WF_CMD_CLI_SUBMIT_H

#include "cmd/cli/ask.h"
#include "cmd/cli/cli.h"
#include "common/base/bytes.h"
#include "common/base/status.h"
#include "common/conf/conf.h"
#include "common/session/check.h"
#include <stdbool.h>

/* How a job is to be submitted; what the options of train and submit say. */
typedef struct wf_submit_options {
    bool resume;                    /* go on with its newest run */
    const char *name;               /* in place of the one in the file; or NULL */
    wf_words set;                   /* KEY=VALUE: in place of what the file says */
    uint32_t workers;               /* that will train it; 0: not known */
    const wf_cluster_conf *cluster; /* the same, and their devices; NULL: not known. Borrowed */
    bool prune;                     /* drop the runs that are more than the job keeps */
    const char *again;              /* goes on with it; NULL: weft recover does. Borrowed */
    bool warned;                    /* the compiler's warnings were printed before */
} wf_submit_options;

/* A job file that has been checked here, where errors can name its lines. */
typedef struct wf_submission {
    wf_job_conf *job;
    wf_job_facts facts;
    wf_bytes text;
    const char *path; /* borrowed */
    wf_submit_options options;
    char run[WF_RUN_NAME]; /* which run it has become; "" until it is submitted */
} wf_submission;

/* Reads and checks the file: its words, its optimizer, that its model compiles, that its data fits
 * the model and the loss, that callbacks watch something. Prints the compiler's warnings. Needs no
 * cluster. The caller closes *s, also after an error. */
WF_MUST_USE wf_status wf_submission_open(const char *path, const wf_submit_options *options,
                                         wf_submission *s, wf_err *err);
void wf_submission_close(wf_submission *s);
/* When it is to go on with a run: holds the model against that run's, before anything is started.
 * Errors: WF_MISMATCH, in words. */
WF_MUST_USE wf_status wf_submission_check_resume(const wf_cluster_conf *conf,
                                                 const wf_submission *s, wf_err *err);
/* Hands it to the master as a run, keeps a copy under the state folder, and drops old runs. Errors:
 * what the master answers. */
WF_MUST_USE wf_status wf_submit(const wf_cluster_conf *conf, wf_ask *a, wf_submission *s,
                                wf_err *err);

#endif
