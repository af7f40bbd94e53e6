/* SPDX-License-Identifier: Apache-2.0 */
/* ps/life.c */
#include "ps/life.h"

static const char *const ps_states[] = {"empty", "loading", "serving"};
static const char *const ps_events[] = {"begun", "loaded", "cleared"};
static const wf_edge ps_edges[] = {
    {WF_STATE(WF_PS_EMPTY), WF_PS_WAS_BEGUN, WF_PS_LOADING},
    {WF_STATE(WF_PS_LOADING), WF_PS_WAS_LOADED, WF_PS_SERVING},
    {WF_STATE(WF_PS_EMPTY) | WF_STATE(WF_PS_LOADING) | WF_STATE(WF_PS_SERVING), WF_PS_WAS_CLEARED,
     WF_PS_EMPTY},
};

const wf_states wf_ps_states = WF_STATES("set-ups", ps_states, ps_events, ps_edges);

static const char *const move_states[] = {"none", "dialling", "sent"};
static const char *const move_events[] = {"ordered", "sent", "taken", "kept", "dropped"};
enum { GOING = WF_STATE(WF_MOVE_DIALLING) | WF_STATE(WF_MOVE_SENT) };
static const wf_edge move_edges[] = {
    {WF_STATE(WF_MOVE_NONE), WF_MOVE_WAS_ORDERED, WF_MOVE_DIALLING},
    {WF_STATE(WF_MOVE_DIALLING), WF_MOVE_WAS_SENT, WF_MOVE_SENT},
    {WF_STATE(WF_MOVE_SENT), WF_MOVE_WAS_SENT, WF_STATE_SAME},
    {WF_STATE(WF_MOVE_SENT), WF_MOVE_WAS_TAKEN, WF_MOVE_NONE},
    {GOING, WF_MOVE_WAS_KEPT, WF_MOVE_NONE},
    {GOING, WF_MOVE_WAS_DROPPED, WF_MOVE_NONE},
};

const wf_states wf_move_states = WF_STATES("moves", move_states, move_events, move_edges);
