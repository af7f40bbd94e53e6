/* SPDX-License-Identifier: Apache-2.0 */
/* master/member/facts.c */
#include "master/member/facts.h"

static void add_ps(const wf_master *m, const wf_member *who, wf_facts *f)
{
    bool here = wf_member_is_registered(who);
    bool holds = m->job && who->generation == m->job_generation && who->ready;

    f->ps_live &= here;
    f->ps_have_view &= who->view_acked == m->view;
    f->ps_ready &= here && holds;
    f->ps_empty |= here && !holds;
}

static void add_worker(const wf_master *m, wf_member *who, wf_facts *f)
{
    bool here = wf_member_is_registered(who);

    f->any_worker |= here;
    f->worker_away |= wf_member_is_live(who) && !here;
    f->claims_out |= who->state == WF_MEMBER_UNCLAIMED;
    f->to_start |= m->job && here && who->generation != m->job_generation;
    if (!f->chief && m->job && wf_member_trains(who, m->job_generation))
        f->chief = who;
}

const wf_facts *wf_master_facts(wf_master *m)
{
    wf_facts f = {.ps_live = true, .ps_have_view = true, .ps_ready = true};

    if (m->facts_known)
        return m->facts;
    for (uint32_t i = 0; i < m->n_members; i++)
        if (m->members[i].task.role == WF_ROLE_PS)
            add_ps(m, &m->members[i], &f);
        else
            add_worker(m, &m->members[i], &f);
    *m->facts = f;
    m->facts_known = true;
    return m->facts;
}
