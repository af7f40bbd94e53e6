/* SPDX-License-Identifier: Apache-2.0 */
/* master/cut/cut.c */
#include "master/cut/cut.h"

static const char *const states[] = {"none", "holding", "writing", "committing"};
static const char *const events[] = {"opened", "forked", "granted", "committed", "failed",
                                     "aborted"};

enum {
    OPEN = WF_STATE(WF_CUT_HOLDING) | WF_STATE(WF_CUT_WRITING) | WF_STATE(WF_CUT_COMMITTING),
};

static const wf_edge edges[] = {
    {WF_STATE(WF_CUT_NONE), WF_CUT_WAS_OPENED, WF_CUT_HOLDING},
    {WF_STATE(WF_CUT_HOLDING), WF_CUT_WAS_FORKED, WF_CUT_WRITING},
    {WF_STATE(WF_CUT_WRITING), WF_CUT_WAS_GRANTED, WF_CUT_COMMITTING},
    {WF_STATE(WF_CUT_COMMITTING), WF_CUT_WAS_COMMITTED, WF_CUT_NONE},
    {OPEN, WF_CUT_WAS_FAILED, WF_CUT_NONE},
    {OPEN, WF_CUT_WAS_ABORTED, WF_CUT_NONE},
};

const wf_states wf_cut_states = WF_STATES("cut", states, events, edges);

void wf_cut_move(wf_cut *c, wf_cut_event event, const char *job)
{
    c->state = (wf_cut_state)wf_states_take(&wf_cut_states, c->state, event, job);
}

bool wf_cut_may(const wf_cut *c, wf_cut_event event)
{
    return wf_states_next(&wf_cut_states, c->state, event) >= 0;
}

bool wf_cut_is_holding(const wf_cut *c)
{
    return c->state == WF_CUT_HOLDING || (c->final && c->state != WF_CUT_NONE);
}
