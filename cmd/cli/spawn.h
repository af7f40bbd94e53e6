/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/spawn.h - new processes: a task under its supervisor, a supervisor on its own. */
#ifndef WF_CMD_CLI_SPAWN_H
#define WF_CMD_CLI_SPAWN_H

#include "common/base/status.h"
#include <sys/types.h>

/* Runs argv (ends with NULL) with its output appended to `log`, no input, and a process group of
 * its own. It gets SIGKILL when the calling thread ends. Errors: WF_IO. */
WF_MUST_USE wf_status wf_spawn(const char *const argv[], const char *log, pid_t *pid, wf_err *err);

/* Runs body(arg, fd) in a process of its own session whose output is appended to `log`, and waits
 * until it writes a wf_err to fd: status WF_OK, or what went wrong, which is given back. */
WF_MUST_USE wf_status wf_spawn_daemon(const char *log, void (*body)(void *arg, int fd), void *arg,
                                      wf_err *err);

#endif
