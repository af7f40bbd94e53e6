/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor/life.c */
#include "supervisor/life.h"

static const char *const states[] = {"due", "running", "down", "ending", "killed", "over"};
static const char *const events[] = {"started",  "not started",    "died",
                                     "given up", "ordered to end", "overdue"};
static const wf_edge edges[] = {
    {WF_STATE(WF_LIFE_DUE), WF_LIFE_STARTED, WF_LIFE_RUNNING},
    {WF_STATE(WF_LIFE_DUE), WF_LIFE_NOT_STARTED, WF_STATE_SAME},
    {WF_STATE(WF_LIFE_RUNNING), WF_LIFE_DIED, WF_LIFE_DUE},
    {WF_STATE(WF_LIFE_DUE) | WF_STATE(WF_LIFE_RUNNING), WF_LIFE_GIVEN_UP, WF_LIFE_DOWN},
    {WF_STATE(WF_LIFE_RUNNING), WF_LIFE_ORDERED, WF_LIFE_ENDING},
    {WF_STATE(WF_LIFE_DUE) | WF_STATE(WF_LIFE_DOWN), WF_LIFE_ORDERED, WF_LIFE_OVER},
    {WF_STATE(WF_LIFE_ENDING), WF_LIFE_OVERDUE, WF_LIFE_KILLED},
    {WF_STATE(WF_LIFE_ENDING) | WF_STATE(WF_LIFE_KILLED), WF_LIFE_DIED, WF_LIFE_OVER},
};

const wf_states wf_life_states = WF_STATES("tasks", states, events, edges);
