/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor/life.h - the life cycle of a task under its supervisor.
 *
 * The life cycle of tasks:
 *   due --started--> running --died--> due
 *   due --not started--> same
 *   due, running --given up--> down
 *   running --ordered to end--> ending --overdue--> killed
 *   ending, killed --died--> over
 *   due, down --ordered to end--> over
 *
 * due: its process is to be started, at once or after a delay. down: it is not started again while
 * this supervisor runs. ending: its process was asked to end. over: it has no process, and gets
 * none.
 */
#ifndef WF_SUPERVISOR_LIFE_H
#define WF_SUPERVISOR_LIFE_H

#include "common/log/states.h"

typedef enum wf_life_state {
    WF_LIFE_DUE = 0,
    WF_LIFE_RUNNING,
    WF_LIFE_DOWN,
    WF_LIFE_ENDING,
    WF_LIFE_KILLED,
    WF_LIFE_OVER
} wf_life_state;
typedef enum wf_life_event {
    WF_LIFE_STARTED = 0,
    WF_LIFE_NOT_STARTED,
    WF_LIFE_DIED,
    WF_LIFE_GIVEN_UP,
    WF_LIFE_ORDERED,
    WF_LIFE_OVERDUE
} wf_life_event;
extern const wf_states wf_life_states;

#endif
