/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/super.h - the supervisor behind `weft up`: starts the tasks of this host, starts those
 * again that die, and takes all down together.
 *
 * One per state_dir, held by a lock on STATE/supervisor.lock, which holds its pid (super_lock.c). A
 * task's output is appended to STATE/logs/ROLE-N.log. Tasks get SIGKILL when the supervisor dies,
 * however it dies (PR_SET_PDEATHSIG), so that a new `weft up` never meets the tasks of an old one.
 *
 * When a task is started again, and how all go down: supervisor/supervisor.h.
 */
#ifndef WF_CMD_CLI_SUPER_H
#define WF_CMD_CLI_SUPER_H

#include "common/base/status.h"
#include "common/conf/conf.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Makes the folders of a cluster on this host. Errors: WF_IO, with the line of the cluster file
 * that names the folder. */
WF_MUST_USE wf_status wf_super_make_state(const wf_cluster_conf *conf, wf_err *err);
/* Starts the supervisor in the background and returns when it holds the lock and has spawned every
 * task, or could not. Errors: WF_EXISTS when one runs already ("weft down"); WF_IO; WF_INVALID for
 * a port in use, with the process that has it where /proc tells. */
WF_MUST_USE wf_status wf_super_start(const wf_cluster_conf *conf, wf_err *err);
/* Runs it in this process until SIGTERM or SIGINT, then takes the tasks down. `ready_fd` gets one
 * byte when all are spawned, or the error's text; -1: nobody waits. */
WF_MUST_USE wf_status wf_super_run(const wf_cluster_conf *conf, int ready_fd, wf_err *err);
/* Ends a running one, also one that is stopped (SIGSTOP): SIGTERM, then waits for its lock. One
 * that does not end in time is killed, and its tasks with it. Errors: WF_NOTFOUND when none runs;
 * WF_TIMEOUT when it was killed. */
WF_MUST_USE wf_status wf_super_stop(const wf_cluster_conf *conf, int64_t timeout_ms, wf_err *err);
/* The pid of the running supervisor, 0 when none runs. */
pid_t wf_super_pid(const wf_cluster_conf *conf);
/* The error that a supervisor, `pid`, has the lock: WF_EXISTS. */
wf_status wf_super_up_already(const wf_cluster_conf *conf, pid_t pid, wf_err *err);
/* Takes the lock of state_dir, and writes this process's pid into it; *fd holds it until it is
 * closed. Errors: WF_EXISTS when a supervisor has it; WF_IO. */
WF_MUST_USE wf_status wf_super_lock(const wf_cluster_conf *conf, int *fd, wf_err *err);

/* That asking the master can succeed: somebody listens at its address, or a supervisor here will
 * start it again. Errors, at once and not after an answer's whole deadline: WF_NOTFOUND; WF_IO when
 * it is down for good. */
WF_MUST_USE wf_status wf_super_check_up(const wf_cluster_conf *conf, wf_err *err);

/* Waits until every task of the cluster answers, or names those that do not. Errors: WF_TIMEOUT,
 * naming who is missing and its log; WF_IO when one is down for good. */
WF_MUST_USE wf_status wf_super_wait_ready(const wf_cluster_conf *conf, int64_t timeout_ms,
                                          wf_err *err);

#endif
