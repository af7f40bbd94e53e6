/* SPDX-License-Identifier: Apache-2.0 */
/* master/facts.c - facts about all members that each iteration of the loop needs. One pass finds
 * them; they are kept until an event may have changed them. Progress and finished splits do not. */
#include "master/state.h"

static void add_ps(const wf_master *m, const wf_member *who, wf_facts *f)
{
    bool holds = m->job && who->generation == m->job->generation && who->ready;

    f->ps_live &= who->registered && who->peer;
    f->ps_have_view &= who->view_acked == m->view;
    f->ps_ready &= who->registered && holds;
    f->ps_empty |= who->registered && !holds;
}

static void add_worker(const wf_master *m, wf_member *who, wf_facts *f)
{
    f->any_worker |= who->registered;
    f->worker_away |= who->live && (!who->registered || !who->peer);
    f->claims_out |= who->unclaimed;
    f->to_start |= m->job && who->registered && who->peer && who->generation != m->job->generation;
    if (!f->chief && m->job && wf_member_trains(who, m->job))
        f->chief = who;
}

const wf_facts *wf_master_facts(wf_master *m)
{
    wf_facts f = {.known = true, .ps_live = true, .ps_have_view = true, .ps_ready = true};

    if (m->facts.known)
        return &m->facts;
    for (uint32_t i = 0; i < m->n_members; i++)
        if (m->members[i].task.role == WF_ROLE_PS)
            add_ps(m, &m->members[i], &f);
        else
            add_worker(m, &m->members[i], &f);
    m->facts = f;
    return &m->facts;
}
