/* SPDX-License-Identifier: Apache-2.0 */
/* master/cut/cut.h - the cut that a job has open, if any: a checkpoint on its way.
 *
 * The life cycle of cuts:
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

#include "master/job/job.h"

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
    wf_cut_state state; /* written by move() of cut.c alone */
    uint32_t number;    /* of the generation's cuts; stays when the cut ends */
    uint64_t chief;
    bool final;
    bool asked;               /* by a callback, for the end of the epoch */
    int64_t began_ns;         /* of the last one; 0: the generation has had none */
    int64_t began_present_ns; /* what m->watch.present_ns was then */
    int64_t retry_ns;         /* none is opened before; after a failure of the last one */
    uint32_t failures;        /* of the last one in a row */
    /* of all cuts */
    uint32_t n_saved, n_failed;
    uint64_t pause_ns, pause_most_ns; /* for how long training stood still */
} wf_cut;

/* Whether an event can happen to the cut now: asked of what a peer says. */
bool wf_cut_may(const wf_cut *c, wf_cut_event event);
/* Whether its workers hold. For the last checkpoint of a job they hold until it is written: steps
 * beyond it would be lost. */
bool wf_cut_is_holding(const wf_cut *c);
/* Whether the open cut waits for a worker's report. */
bool wf_cut_waits_for(const wf_job *j, const wf_member *who);
/* Whether a message is the chief's, about the open cut. */
bool wf_cut_is_chiefs(const wf_cut *c, const wf_member *who, const wf_msg *msg);

/* Opens a cut: journaled, and announced to the workers that train. Training stands still from here
 * until the copies are taken. */
WF_MUST_USE wf_status wf_cut_open(wf_master *m, wf_job *j, const wf_member *chief, bool final,
                                  bool asked, wf_err *err);
/* A worker registers that holds for cut `holds` (0: for none): it is told what became of that cut,
 * or of the open one. What it was told or reported over the link before is void. */
WF_MUST_USE wf_status wf_cut_on_register(wf_master *m, wf_job *j, wf_member *who, uint32_t holds,
                                         wf_err *err);
/* Passes a report, with the ledger in it, on to the chief. */
WF_MUST_USE wf_status wf_cut_pass_report(wf_master *m, wf_job *j, const Weft__CutReport *report,
                                         wf_err *err);
/* The ps have their copies: training goes on, but for the last checkpoint. */
WF_MUST_USE wf_status wf_cut_on_forked(wf_master *m, wf_job *j, wf_err *err);
/* The chief asks for the right to commit, and gets it (M3). */
WF_MUST_USE wf_status wf_cut_on_commit(wf_master *m, wf_job *j, wf_member *who, wf_err *err);
/* The checkpoint is made: that is journaled. Errors: WF_PROTO from a chief without the right. */
WF_MUST_USE wf_status wf_cut_on_saved(wf_master *m, wf_job *j, const Weft__CutDone *done,
                                      wf_err *err);
/* The cut has failed, and changes nothing but a counter: older checkpoints stay. The last one of a
 * job is tried again, and fails the job after some times; `told`: the chief knows. */
WF_MUST_USE wf_status wf_cut_fail(wf_master *m, wf_job *j, bool told, const char *what,
                                  const char *hint, wf_err *err);
/* The open cut, if any, comes to nothing; workers go on, and another one is wanted. */
WF_MUST_USE wf_status wf_cut_abort(wf_master *m, wf_job *j, wf_err *err);

/* A generation begins: its cuts are counted from 1. None is open. */
void wf_cut_begin_generation(wf_cut *c);
/* A cut of the journal, and one that was committed as `step`. */
void wf_cut_replay(wf_job *j, const Weft__CutRecord *r);

#endif
