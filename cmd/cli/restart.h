/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/restart.h - when a task that died is started again. Pure: the time is given. */
#ifndef WF_CMD_CLI_RESTART_H
#define WF_CMD_CLI_RESTART_H

#include "common/base/clock.h"
#include <stdbool.h>
#include <stdint.h>

#define WF_RESTART_FIRST_NS (50 * WF_NS_PER_MS)
#define WF_RESTART_MOST_NS (5 * WF_NS_PER_S)
#define WF_RESTART_HEALTHY_NS (10 * WF_NS_PER_S) /* a life so long makes the delay short again */
#define WF_RESTART_WINDOW_NS (600 * WF_NS_PER_S)
enum { WF_RESTART_BUDGET = 20 }; /* restarts within the window */

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

/* Why a task whose process ended with this status (of waitpid) is not started again; NULL if it is.
 * Whoever asked a task to end, and whatever its exit code: only the supervisor ends a task for
 * good. Two codes say that starting it again is useless. 2 and 3: its files are wrong, and it would
 * end the same way. 4: another process has its place, and the two would displace each other in
 * turn. */
const char *wf_restart_useless(int status);

#endif
