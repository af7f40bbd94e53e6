/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor/supervisor.h - the supervisor of the tasks of one host: it starts their processes,
 * starts those again that end, and takes all down together. It opens no socket, reads no clock and
 * makes no process: events and the time go in, and the calls of wf_supervisor_ops come out.
 *
 * A task ends for good only with the supervisor. Any other end of its process is a death, whatever
 * its exit code and whoever asked for it, and one that hangs is killed (hung.c): the process is
 * started again after 50 ms, doubling to 5 s, and after 50 ms again once one has lived 10 s. The
 * task is left down when its budget of restarts is used up (restart.h), and at once after exit code
 * 2 (its files are wrong), 3 (it cannot do what they say) or 4 (another process has its place).
 *
 * Invariants
 *   S1  a task has one process at most
 *   S2  once the end is ordered nothing is started, and all processes are gone WF_SUPERVISOR_END_NS
 *       later, but for the time in which the system ends one that is killed
 *   S3  the master learns how the last process of a ps or worker ended, and that the task is down,
 *       also if it was away then
 */
#ifndef WF_SUPERVISOR_SUPERVISOR_H
#define WF_SUPERVISOR_SUPERVISOR_H

#include "common/base/status.h"
#include "common/wire/net.h"
#include "common/wire/task.h"
#include "supervisor/restart.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct wf_supervisor wf_supervisor;

/* A process that does not end within this is killed; a ps may be writing a shard. */
#define WF_SUPERVISOR_END_NS (10 * WF_NS_PER_S)
enum { WF_SUPERVISOR_REASON = 1024 }; /* room for the reason of an end; a longer one is cut */

typedef struct wf_supervisor_task {
    wf_task task;
    const char *log; /* where its output goes: a reason names it */
} wf_supervisor_task;

typedef struct wf_supervisor_ops {
    void *arg;
    /* Starts a process of task i; *pid is not 0, and of no other one that runs. */
    wf_status (*start)(void *arg, uint32_t i, uint64_t *pid, wf_err *err);
    /* Asks a process to end, or kills it. */
    void (*end)(void *arg, uint64_t pid, bool kill);
    /* Task i is down: for those on this host who ask while the master is away, or is the task. */
    void (*note_down)(void *arg, uint32_t i, const char *reason);
    /* What the last process of task i said when it ended; "": nothing. NULL: nobody knows. */
    void (*last_words)(void *arg, uint32_t i, char *out, size_t size);
} wf_supervisor_ops;

typedef struct wf_supervisor_conf {
    const wf_supervisor_task *tasks; /* [n], borrowed for the supervisor's life */
    uint32_t n;
    const char *session; /* of this supervisor, which its processes got; borrowed likewise */
    int64_t master_ns;   /* a master that says nothing for so long hangs; 0: it is let be */
    wf_supervisor_ops ops;
} wf_supervisor_conf;

/* A supervisor that reports to the master over a link of `net`; both are borrowed. *out is the
 * caller's. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_supervisor_new(const wf_supervisor_conf *conf, wf_net *net,
                                        wf_peer *master, wf_supervisor **out, wf_err *err);
/* Frees *s and sets it to NULL; NULL is fine. Its processes are left as they are. */
void wf_supervisor_free(wf_supervisor **s);

/* Starts all tasks. Errors: those of ops.start, at the first that cannot be started; the caller
 * orders the end. */
WF_MUST_USE wf_status wf_supervisor_begin(wf_supervisor *s, int64_t now_ns, wf_err *err);
/* An event of the net. */
void wf_supervisor_on_event(wf_supervisor *s, wf_event *ev);
/* A process has ended; one that is not of a task changes nothing. */
void wf_supervisor_on_end(wf_supervisor *s, uint64_t pid, wf_exit how, int64_t now_ns);
/* Orders the end of all; a second order changes nothing. */
void wf_supervisor_go_down(wf_supervisor *s, int64_t now_ns);
/* Does what is due; at least once a second. */
void wf_supervisor_advance(wf_supervisor *s, int64_t now_ns);
/* When something will be due; INT64_MAX: after an event. */
int64_t wf_supervisor_deadline(const wf_supervisor *s);
/* The end was ordered, and all processes are gone. */
bool wf_supervisor_is_over(const wf_supervisor *s);

#endif
