/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/super.h - the supervisor behind `weft up`: starts the tasks of this host, starts those
 * again that die, and takes all down together.
 *
 * One per state_dir, held by a lock on STATE/supervisor.lock, which holds its pid. A task's output
 * is appended to STATE/logs/ROLE-N.log. Tasks get SIGKILL when the supervisor dies, however it dies
 * (PR_SET_PDEATHSIG), so that a new `weft up` never meets the tasks of an old one.
 *
 * A task that exits 0, or 4 (superseded), stays down; any other end is a death: it is started again
 * after 50 ms, doubling to 5 s, from the start once it has lived 10 s; after 20 deaths within 10
 * minutes it is left down, with a word in the log. A task that exits 2 or 3 (its files are wrong)
 * would do so again and is left down at once.
 */
#ifndef WF_CMD_CLI_SUPER_H
#define WF_CMD_CLI_SUPER_H

#include "common/base/status.h"
#include "common/conf/conf.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The role and number of a task as the supervisor knows it. */
typedef enum wf_super_role { WF_SUPER_MASTER, WF_SUPER_PS, WF_SUPER_WORKER } wf_super_role;

/* "master", "ps", "worker" */
const char *wf_super_role_name(wf_super_role role);

/* What the supervisor tells others; both may be NULL. */
typedef struct wf_super_hooks {
    /* A task died: `status` is that of waitpid. Called on the supervisor's one thread, at once; it
     * must not block for long. */
    void (*on_death)(void *arg, wf_super_role role, uint32_t index, pid_t pid, int status);
    /* Called each turn, at least every 100 ms, for the hook's own sockets. */
    void (*on_turn)(void *arg, int64_t now_ns);
    void *arg;
} wf_super_hooks;

/* Starts the supervisor in the background and returns when it holds the lock and has spawned every
 * task, or could not. Errors: WF_EXISTS when one runs already ("weft down"); WF_IO; WF_INVALID for
 * a port in use, with the process that has it where /proc tells. */
WF_MUST_USE wf_status wf_super_start(const wf_cluster_conf *conf, wf_err *err);
/* Runs it in this process until SIGTERM or SIGINT, then takes the tasks down. `ready_fd` gets one
 * byte when all are spawned, or the error's text; -1: nobody waits. */
WF_MUST_USE wf_status wf_super_run(const wf_cluster_conf *conf, const wf_super_hooks *hooks,
                                   int ready_fd, wf_err *err);
/* Ends a running one: SIGTERM, then waits for its lock. Errors: WF_NOTFOUND when none runs;
 * WF_TIMEOUT. */
WF_MUST_USE wf_status wf_super_stop(const wf_cluster_conf *conf, int64_t timeout_ms, wf_err *err);
/* The pid of the running supervisor, 0 when none runs. */
pid_t wf_super_pid(const wf_cluster_conf *conf);

/* That asking the master can succeed: somebody listens at its address, or a supervisor here will
 * start it again. Errors: WF_NOTFOUND, at once, and not after an answer's whole deadline. */
WF_MUST_USE wf_status wf_super_check_up(const wf_cluster_conf *conf, wf_err *err);

/* Waits until every task of the cluster answers, or names those that do not. Errors: WF_TIMEOUT,
 * naming who is missing and its log; WF_IO when one is down for good. */
WF_MUST_USE wf_status wf_super_wait_ready(const wf_cluster_conf *conf, int64_t timeout_ms,
                                          wf_err *err);

#endif
