/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor/restart.h - when a task whose process ended is started again, and when it is not. */
#ifndef WF_SUPERVISOR_RESTART_H
#define WF_SUPERVISOR_RESTART_H

#include "common/base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WF_RESTART_BUDGET = 20, /* restarts within the window */
    WF_RESTART_WINDOW_MINUTES = 10
};
#define WF_RESTART_FIRST_NS (50 * WF_NS_PER_MS)
#define WF_RESTART_MOST_NS (5 * WF_NS_PER_S)
#define WF_RESTART_HEALTHY_NS (10 * WF_NS_PER_S) /* a life so long makes the delay short again */
#define WF_RESTART_WINDOW_NS (WF_RESTART_WINDOW_MINUTES * 60 * WF_NS_PER_S)

/* Zero is a task that has not died yet. */
typedef struct wf_restart {
    int64_t delay_ns;
    int64_t
        deaths_ns[WF_RESTART_BUDGET]; /* a ring of the last ones that were followed by a restart */
    uint32_t n_deaths;
} wf_restart;

/* A task that lived from started_ns died at now_ns. True: start it again at *at_ns. False: the
 * budget is used up. */
bool wf_restart_on_death(wf_restart *r, int64_t started_ns, int64_t now_ns, int64_t *at_ns);

/* How a process ended: by a signal, or with an exit code. */
typedef struct wf_exit {
    int signal; /* 0: by itself */
    int code;
} wf_exit;

/* "killed by signal 9 (Killed)", "ended with exit code 1"; written into text, which is returned. */
const char *wf_exit_str(wf_exit how, char *text, size_t size);

/* Why a task whose process ended so is not started again; NULL if it is. Whoever asked a task to
 * end, and whatever its exit code: only the supervisor ends a task for good. Two kinds of codes say
 * that starting it again is useless. Its files are wrong, and it would end the same way. Or another
 * process has its place, and the two would displace each other in turn. */
const char *wf_restart_useless(wf_exit how);

#endif
