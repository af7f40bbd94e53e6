/* SPDX-License-Identifier: Apache-2.0 */
/* master/cut/cut.h - the cut that a job has open, if any: a checkpoint on its way.
 *
 * The life cycle of a cut:
 *   none --opened--> holding --forked--> writing --granted--> committing --committed--> none
 *   holding, writing, committing --failed--> none
 *   holding, writing, committing --aborted--> none
 *
 * holding: workers hold, and training stands still. writing: the ps have their copies, and training
 * goes on. committing: the chief has the right to write the manifest (M3); nothing but its word or
 * its end says whether it did.
 */
#ifndef WF_MASTER_CUT_CUT_H
#define WF_MASTER_CUT_CUT_H

#include "common/log/states.h"
#include <stdbool.h>
#include <stdint.h>

typedef enum wf_cut_state {
    WF_CUT_NONE = 0,
    WF_CUT_HOLDING,
    WF_CUT_WRITING,
    WF_CUT_COMMITTING
} wf_cut_state;

typedef enum wf_cut_event {
    WF_CUT_WAS_OPENED = 0,
    WF_CUT_WAS_FORKED,
    WF_CUT_WAS_GRANTED,
    WF_CUT_WAS_COMMITTED,
    WF_CUT_WAS_FAILED,
    WF_CUT_WAS_ABORTED
} wf_cut_event;

extern const wf_states wf_cut_states;

typedef struct wf_cut {
    wf_cut_state state; /* written by wf_cut_move alone */
    uint32_t number;    /* of the generation's cuts; stays when the cut ends */
    uint64_t chief;
    bool final;
    bool asked; /* by a callback, for the end of the epoch */
    int64_t began_ns;
    int64_t began_present_ns; /* what m->watch.present_ns was then */
} wf_cut;

/* Moves a job's cut along its life cycle. */
void wf_cut_move(wf_cut *c, wf_cut_event event, const char *job);
/* Whether an event can happen to the cut now: asked of what a peer says. */
bool wf_cut_may(const wf_cut *c, wf_cut_event event);
/* Whether its workers hold. For the last checkpoint of a job they hold until it is written: steps
 * beyond it would be lost. */
bool wf_cut_is_holding(const wf_cut *c);

#endif
