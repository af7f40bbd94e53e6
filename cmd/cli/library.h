/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/library.h - libweft for commands: its errors become theirs, its warnings go to stderr. */
#ifndef WF_CMD_CLI_LIBRARY_H
#define WF_CMD_CLI_LIBRARY_H

#include "cmd/cli/cli.h"
#include "common/conf/conf.h"
#include "common/conf/run.h"
#include "lib/weft.h"
#include <stdint.h>

/* Hands an error over; returns its status. */
wf_status wf_library_fail(const weft_error *e, wf_err *err);
/* "warning: ..." on stderr, for weft_run_options.warn. */
void wf_library_warn(void *arg, const char *sentence);

/* A trained model, as the words of a command name it. */
typedef struct wf_trained {
    wf_cluster_conf *conf;
    char run[WF_RUN_NAME]; /* that was named; "": the newest of the job */
    weft_job *job;
    weft_list *weights; /* of its checkpoint */
} wf_trained;

/* Opens the job `word` (a file, or a name of a job that was submitted in the cluster of the file
 * `cluster` or NULL). *t is all zero before, and to be closed also after a failure. Errors: those
 * of wf_place_cluster, wf_place_job and weft_job_parse. */
WF_MUST_USE wf_status wf_trained_job(const char *cluster, const char *word, wf_trained *t,
                                     wf_err *err);
/* Reads its newest checkpoint that verifies (telling on stderr which it passes over), or what
 * --from says: a step, "latest", "best"; NULL: "latest". Errors: those of weft_job_weights. */
WF_MUST_USE wf_status wf_trained_weights(wf_trained *t, const char *from, wf_err *err);
void wf_trained_close(wf_trained *t);

#endif
