/* SPDX-License-Identifier: Apache-2.0 */
/* master/member/facts.h - facts about all members that each iteration of the loop needs. One pass
 * finds them; they are kept until an event may have changed them. Progress and finished splits do
 * not. */
#ifndef WF_MASTER_MEMBER_FACTS_H
#define WF_MASTER_MEMBER_FACTS_H

#include "master/member/member.h"

typedef struct wf_facts {
    bool variables_here;  /* all tasks that hold variables are registered, */
    bool ps_here;         /* or the ps among them */
    bool variables_ready; /* all hold the generation in hand */
    bool variables_gone;  /* a ps that is here does not hold it, or no worker that is to does */
    bool variables_kept;  /* all ps hold it; where workers do, all live ones have said what they
                           * hold, and one does */
    bool ps_have_view;    /* every ps has the newest view */
    bool any_worker;      /* is registered */
    bool worker_away;     /* a live one that is not registered: it may be training */
    bool claims_out;      /* a worker may hold splits of before the master's restart */
    bool to_start;        /* a worker waits for its start */
    /* The live worker of the lowest number that has started: the same one as long as it lives, so
     * the lease is its membership (M3). NULL: none. */
    wf_member *chief;
} wf_facts;

const wf_facts *wf_master_facts(wf_master *m);

#endif
