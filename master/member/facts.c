/* SPDX-License-Identifier: Apache-2.0 */
/* master/member/facts.c */
#include "master/member/facts.h"

static void add_holder(const wf_master *m, const wf_member *who, wf_facts *f)
{
    bool here = wf_member_is_registered(who);
    bool holds = m->job && who->generation == m->job_generation && who->part == WF_PART_READY;

    f->variables_here &= here;
    f->variables_ready &= here && holds;
    f->variables_gone |= here && !holds;
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
    wf_facts f = {.variables_here = true, .variables_ready = true, .ps_have_view = true};

    if (m->facts_known)
        return m->facts;
    for (uint32_t i = 0; i < m->n_members; i++) {
        wf_member *who = &m->members[i];

        if (wf_member_holds_variables(m, who))
            add_holder(m, who, &f);
        if (who->task.role == WF_ROLE_PS)
            f.ps_have_view &= who->view_acked == m->view;
        else
            add_worker(m, who, &f);
    }
    wf_assert(!f.chief || wf_member_is_live(f.chief)); /* M3 */
    *m->facts = f;
    m->facts_known = true;
    return m->facts;
}
