/* SPDX-License-Identifier: Apache-2.0 */
/* worker/life.h - the life cycles of a worker with a job: what it does, whether a checkpoint holds
 * it, and, where it is the chief, how far the checkpoint is.
 *
 * The life cycle of workers:
 *   waiting --step begun--> computing --step ended--> waiting
 *   waiting --unit begun--> evaluating --unit ended--> waiting
 *   waiting, computing, evaluating, faulted --failed--> faulted
 *   waiting, computing, evaluating, faulted --halted--> waiting
 *
 * waiting: for whatever waits.c names. faulted: it stands still until the master halts it.
 *
 * The life cycle of holds:
 *   free, held, reported --opened--> held --reported--> reported
 *   held, reported --link fresh--> held
 *   free --link fresh--> same
 *   held, reported --resumed--> free
 *   free, held, reported --halted--> free
 *
 * held: no step begins; what is in flight ends. reported: the master knows where this worker is,
 * over the link that there is.
 *
 * The life cycle of chiefs:
 *   idle --opened--> gathering --all reports in--> saving --all files in--> asking
 *   asking --allowed--> idle
 *   idle, gathering, saving, asking --aborted--> idle
 *
 * gathering: of the reports of all workers. saving: the exchange copies and writes. asking: the
 * master for the right to commit.
 */
#ifndef WF_WORKER_LIFE_H
#define WF_WORKER_LIFE_H

#include "common/log/states.h"

typedef enum wf_worker_state {
    WF_WORKER_WAITING = 0,
    WF_WORKER_COMPUTING,
    WF_WORKER_EVALUATING,
    WF_WORKER_FAULTED
} wf_worker_state;
typedef enum wf_worker_event {
    WF_WORKER_STEP_BEGUN = 0,
    WF_WORKER_STEP_ENDED,
    WF_WORKER_UNIT_BEGUN,
    WF_WORKER_UNIT_ENDED,
    WF_WORKER_FAILED,
    WF_WORKER_HALTED
} wf_worker_event;
extern const wf_states wf_worker_states;

typedef enum wf_hold_state { WF_HOLD_FREE = 0, WF_HOLD_HELD, WF_HOLD_REPORTED } wf_hold_state;
typedef enum wf_hold_event {
    WF_HOLD_OPENED = 0,
    WF_HOLD_WAS_REPORTED,
    WF_HOLD_LINK_FRESH,
    WF_HOLD_RESUMED,
    WF_HOLD_HALTED
} wf_hold_event;
extern const wf_states wf_hold_states;

typedef enum wf_chief_state {
    WF_CHIEF_IDLE = 0,
    WF_CHIEF_GATHERING,
    WF_CHIEF_SAVING,
    WF_CHIEF_ASKING
} wf_chief_state;
typedef enum wf_chief_event {
    WF_CHIEF_OPENED = 0,
    WF_CHIEF_REPORTS_IN,
    WF_CHIEF_FILES_IN,
    WF_CHIEF_ALLOWED,
    WF_CHIEF_ABORTED
} wf_chief_event;
extern const wf_states wf_chief_states;

#endif
