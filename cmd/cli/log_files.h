/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/log_files.h - the logs of a cluster's tasks on this host: STATE/logs/ROLE-N.log. */
#ifndef WF_CMD_CLI_LOG_FILES_H
#define WF_CMD_CLI_LOG_FILES_H

#include "common/base/arena.h"
#include "common/base/bytes.h"
#include "common/base/status.h"
#include "common/conf/conf.h"
#include <stddef.h>
#include <stdint.h>

typedef struct wf_log_file {
    const char *task, *path; /* "worker/1" */
    uint64_t read;           /* bytes of it that were printed, or passed over */
} wf_log_file;

/* The logs that a word means: "worker/1" or "worker-1", "ps" for all of them, "master",
 * "supervisor", or NULL for those of all tasks; in the arena, also where there is no file.
 * Errors: WF_NOTFOUND for a word that is no task of the cluster. */
WF_MUST_USE wf_status wf_log_files(const wf_cluster_conf *conf, const char *word, wf_arena *arena,
                                   wf_log_file **out, size_t *n, wf_err *err);
/* The last lines of one, `lines` at most, into *out, which is empty before and the caller's; sets
 * log->read to the end. Without `all`, lines that were written before the cluster was started last
 * are left out. Errors: WF_NOTFOUND, WF_IO. */
WF_MUST_USE wf_status wf_log_tail(const wf_cluster_conf *conf, wf_log_file *log,
                                  unsigned long long lines, bool all, wf_bytes *out, wf_err *err);
/* Prints what is added to the logs, each line with its task in front if there are several, until
 * Ctrl-C. A log that is moved away, cut short or not there yet is looked for again. */
WF_MUST_USE wf_status wf_log_follow(const wf_log_file logs[], size_t n, wf_err *err);

#endif
