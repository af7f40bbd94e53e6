/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/super_down.h - the tasks of this host that are down for good: the supervisor does not
 * start them again.
 *
 * A line for each in STATE/tasks.down: "ps/1: ended with exit code 2 (its files are wrong); see
 * LOG". The supervisor tells the master too (supervisor/report.c), but the master may be the task
 * that is down. The file is of the supervisor that runs, and empty when it begins.
 */
#ifndef WF_CMD_CLI_SUPER_DOWN_H
#define WF_CMD_CLI_SUPER_DOWN_H

#include "common/base/status.h"
#include "common/conf/conf.h"
#include <stdbool.h>
#include <stddef.h>

/* For the supervisor: no task is down. Errors: WF_IO. */
WF_MUST_USE wf_status wf_super_down_clear(const wf_cluster_conf *conf, wf_err *err);
/* For the supervisor: `task` ("master", "ps/1") is down, and why. Errors: WF_IO. */
WF_MUST_USE wf_status wf_super_down_add(const wf_cluster_conf *conf, const char *task,
                                        const char *why, wf_err *err);
/* Whether `task` (NULL: any) is down under the supervisor that runs now; `why` gets its line. */
bool wf_super_is_down(const wf_cluster_conf *conf, const char *task, char *why, size_t size);
/* WF_OK unless `task` (NULL: any) is down; then WF_IO with its line and what to do. */
WF_MUST_USE wf_status wf_super_check_down(const wf_cluster_conf *conf, const char *task,
                                          wf_err *err);

#endif
