/* SPDX-License-Identifier: Apache-2.0 */
/* master/member/facts.c */
#include "master/member/facts.h"

static void add_ps(const wf_master *m, const wf_member *who, wf_facts *f)
{
    bool here = wf_member_is_registered(who);
    bool holds = m->job && wf_member_has_part(who, m->job_generation);

    f->ps_have_view &= who->view_acked == m->view;
    if (!wf_member_holds_variables(m, who))
        return;
    f->variables_here &= here;
    f->ps_here &= here;
    f->variables_ready &= here && holds;
    f->variables_kept &= here && holds;
    f->variables_gone |= here && !holds;
}

/* What workers have that hold variables: the same each, and one is enough. */
typedef struct held {
    bool here, by_any, by_one_here;
} held;

/* Whether it could not start. */
static bool has_failed(const wf_master *m, const wf_member *who)
{
    return m->job && who->unfit.failures > 0 && who->unfit.generation == m->job_generation &&
           !wf_member_has_part(who, m->job_generation);
}

static void add_holder(const wf_master *m, const wf_member *who, wf_facts *f, held *h)
{
    bool here = wf_member_is_registered(who);
    bool holds = m->job && wf_member_has_part(who, m->job_generation);

    if (!wf_member_may_have_job(m, who))
        return;
    if (who->state == WF_MEMBER_DOWN || has_failed(m, who)) /* it is not waited for */
        return;
    f->variables_here &= here;
    f->variables_ready &= here && holds;
    h->here |= here;
    h->by_one_here |= here && holds;
    h->by_any |= holds || who->state == WF_MEMBER_UNCLAIMED;
}

static void add_worker(const wf_master *m, wf_member *who, wf_facts *f)
{
    bool here = wf_member_is_registered(who);

    f->any_worker |= here;
    f->variables_here &= here || !wf_member_is_stage(m, who); /* all of these are waited for */
    f->worker_away |= wf_member_is_live(who) && !here;
    f->claims_out |= who->state == WF_MEMBER_UNCLAIMED;
    f->to_start |=
        m->job && here && who->generation != m->job_generation && wf_member_may_have_job(m, who);
    if (!f->chief && m->job && wf_member_trains(who, m->job_generation))
        f->chief = who;
}

const wf_facts *wf_master_facts(wf_master *m)
{
    wf_facts f = {.variables_here = true,
                  .ps_here = true,
                  .variables_ready = true,
                  .variables_kept = true,
                  .ps_have_view = true};
    held h = {0};

    if (m->facts_known)
        return m->facts;
    for (uint32_t i = 0; i < m->n_members; i++) {
        wf_member *who = &m->members[i];

        if (who->task.role == WF_ROLE_PS)
            add_ps(m, who, &f);
        else
            add_worker(m, who, &f);
        if (m->on_workers && who->task.role == WF_ROLE_WORKER)
            add_holder(m, who, &f, &h);
    }
    if (m->on_workers) {
        f.variables_ready &= h.by_one_here;
        f.variables_gone |= h.here && !h.by_any;
        f.variables_kept &= h.by_one_here && !f.worker_away;
    }
    wf_assert(!f.chief || wf_member_is_live(f.chief)); /* M3 */
    *m->facts = f;
    m->facts_known = true;
    return m->facts;
}
