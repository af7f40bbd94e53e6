/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/shell.h - what the thin shells around the roles share: options, signals, the net, waiting. */
#ifndef WF_CMD_SHELL_H
#define WF_CMD_SHELL_H

#include "cmd/beat.h"
#include "common/base/status.h"
#include "common/conf/conf.h"
#include "common/wire/net.h"
#include "common/wire/tasks.h"
#include "common/wire/wait.h"
#include "common/wire/wires.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct wf_shell {
    wf_task self;
    uint64_t incarnation;
    const char *session; /* of the supervisor; "" */
    wf_cluster_conf *conf;
    const wf_task_conf *me;
    wf_tasks tasks; /* of the cluster, for clients */
    wf_wires *wires;
    wf_net *net;
    wf_peer *master; /* NULL for the master itself */
    bool one_host;   /* payloads need no checksums: nothing but memory lies between the tasks */
    wf_spin spin;    /* while waiting */
    wf_beat *beat;   /* NULL for the master itself */
    int64_t began_ns, told_ns;
    wf_waiting_log waiting_log;
} wf_shell;

/* Reads --cluster FILE, --task N, --session ID, sets up log and signals (SIGTERM and SIGINT ask to
 * stop), and loads the file. */
WF_MUST_USE wf_status wf_shell_begin(wf_shell *s, wf_role role, int argc, char *argv[],
                                     wf_err *err);
/* Makes the net: listens (but for workers), dials the master and starts the sign of life (but for
 * the master). `conf` may have admit set. */
WF_MUST_USE wf_status wf_shell_connect(wf_shell *s, wf_net_conf *conf, wf_err *err);
/* To be called in each turn of a ps's or worker's main loop: it is the progress that signs of life
 * speak of. `tell` is asked a few times a second what the role waits for and holds; long waits are
 * logged. */
void wf_shell_turn(wf_shell *s, void (*tell)(const void *role, wf_vitals *out), const void *role,
                   int64_t now_ns);
/* A transport to a task, for wf_worker_ops.dial. */
WF_MUST_USE wf_status wf_shell_dial(void *shell, wf_task task, const char *address,
                                    wf_transport **out, wf_err *err);
/* Waits for a message, until the net's deadline (at most 50 ms), or until fd is readable. `soon`: a
 * message is on its way, so that it is looked for a moment before the thread sleeps. */
void wf_shell_wait(wf_shell *s, int fd, bool soon);
/* True once a signal asked to stop. */
bool wf_shell_stopping(void);
/* Frees all, prints the error if rc is one, and gives the exit code. */
int wf_shell_end(wf_shell *s, wf_status rc, const wf_err *err);

#endif
