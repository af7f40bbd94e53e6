/* SPDX-License-Identifier: Apache-2.0 */
/* worker/life.c */
#include "worker/life.h"

/* ---- what it does ---- */

static const char *const worker_states[] = {"waiting", "computing", "evaluating", "faulted"};
static const char *const worker_events[] = {"step begun", "step ended", "unit begun",
                                            "unit ended", "failed",     "halted"};

enum { ANY_WORKER = (1u << (WF_WORKER_FAULTED + 1)) - 1 };

static const wf_edge worker_edges[] = {
    {WF_STATE(WF_WORKER_WAITING), WF_WORKER_STEP_BEGUN, WF_WORKER_COMPUTING},
    {WF_STATE(WF_WORKER_COMPUTING), WF_WORKER_STEP_ENDED, WF_WORKER_WAITING},
    {WF_STATE(WF_WORKER_WAITING), WF_WORKER_UNIT_BEGUN, WF_WORKER_EVALUATING},
    {WF_STATE(WF_WORKER_EVALUATING), WF_WORKER_UNIT_ENDED, WF_WORKER_WAITING},
    {ANY_WORKER, WF_WORKER_FAILED, WF_WORKER_FAULTED},
    {ANY_WORKER, WF_WORKER_HALTED, WF_WORKER_WAITING},
};

const wf_states wf_worker_states = WF_STATES("workers", worker_states, worker_events, worker_edges);

/* ---- whether a checkpoint holds it ---- */

static const char *const hold_states[] = {"free", "held", "reported"};
static const char *const hold_events[] = {"opened", "reported", "link fresh", "resumed", "halted"};

enum {
    HELD = WF_STATE(WF_HOLD_HELD) | WF_STATE(WF_HOLD_REPORTED),
    ANY_HOLD = HELD | WF_STATE(WF_HOLD_FREE)
};

static const wf_edge hold_edges[] = {
    {ANY_HOLD, WF_HOLD_OPENED, WF_HOLD_HELD},
    {WF_STATE(WF_HOLD_HELD), WF_HOLD_WAS_REPORTED, WF_HOLD_REPORTED},
    {HELD, WF_HOLD_LINK_FRESH, WF_HOLD_HELD},
    {WF_STATE(WF_HOLD_FREE), WF_HOLD_LINK_FRESH, WF_STATE_SAME},
    {HELD, WF_HOLD_RESUMED, WF_HOLD_FREE},
    {ANY_HOLD, WF_HOLD_HALTED, WF_HOLD_FREE},
};

const wf_states wf_hold_states = WF_STATES("holds", hold_states, hold_events, hold_edges);

/* ---- how far the checkpoint of a chief is ---- */

static const char *const chief_states[] = {"idle", "gathering", "saving", "asking"};
static const char *const chief_events[] = {"opened", "all reports in", "all files in", "allowed",
                                           "aborted"};

enum { ANY_CHIEF = (1u << (WF_CHIEF_ASKING + 1)) - 1 };

static const wf_edge chief_edges[] = {
    {WF_STATE(WF_CHIEF_IDLE), WF_CHIEF_OPENED, WF_CHIEF_GATHERING},
    {WF_STATE(WF_CHIEF_GATHERING), WF_CHIEF_REPORTS_IN, WF_CHIEF_SAVING},
    {WF_STATE(WF_CHIEF_SAVING), WF_CHIEF_FILES_IN, WF_CHIEF_ASKING},
    {WF_STATE(WF_CHIEF_ASKING), WF_CHIEF_ALLOWED, WF_CHIEF_IDLE},
    {ANY_CHIEF, WF_CHIEF_ABORTED, WF_CHIEF_IDLE},
};

const wf_states wf_chief_states = WF_STATES("chiefs", chief_states, chief_events, chief_edges);
