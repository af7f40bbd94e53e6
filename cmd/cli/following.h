/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/following.h - a job followed to its end: a bar on a terminal, lines elsewhere. */
#ifndef WF_CMD_CLI_FOLLOWING_H
#define WF_CMD_CLI_FOLLOWING_H

#include "cmd/cli/ask.h"
#include "common/base/status.h"
#include "common/conf/conf.h"

/* From here on Ctrl-C, SIGTERM and a closed terminal no longer end the program: wf_follow sees
 * them. For whoever has something to take down afterwards. */
void wf_follow_catch(void);

/* Whether a signal has come since. */
bool wf_follow_interrupted(void);

/* "weft recover JOB" into text. */
const char *wf_recover_command(const char *job, char *text, size_t size);

/* Follows a job until it is over. Ctrl-C asks the master to stop it with a checkpoint; a second one
 * stops following. `again` is the command that goes on with a job that was stopped; NULL: it has
 * no checkpoints, and no sentence of its result is wanted. Else ends with that sentence on stdout.
 * Errors: the job's failure; WF_STOPPED; WF_TIMEOUT when the master is gone for long. */
WF_MUST_USE wf_status wf_follow(const wf_cluster_conf *conf, wf_ask *a, const char *job,
                                const char *again, wf_err *err);

#endif
