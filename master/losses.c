/* SPDX-License-Identifier: Apache-2.0 */
/* master/losses.c - a member is lost: what it held of the job in hand goes back, and where the job
 * cannot do without it, the job goes back too. */
#include "common/log/log.h"
#include "master/top.h"

/* Every task that holds the job lets go of it; the steps that they made stay the job's. Behind the
 * record of why it is to: a master that starts anew without that record goes on with the
 * generation, and a worker that was halted would begin in it again with steps that the ps have
 * seen. */
static wf_status halt_all(wf_master *m, wf_job *j, wf_err *err)
{
    for (uint32_t i = 0; i < m->n_members; i++) {
        wf_member *who = &m->members[i];

        if (wf_member_is_live(who) && who->generation == j->generation)
            WF_TRY(wf_member_send(m, who, WF_HALT, NULL, err));
        if (who->task.role == WF_ROLE_WORKER && who->generation == j->generation)
            j->lost_steps += who->steps;
        wf_member_leave_job(m, who);
    }
    m->facts_known = false;
    return WF_OK;
}

wf_status wf_master_roll_back(wf_master *m, wf_job *j, wf_err *err)
{
    WF_TRY(wf_cut_abort(m, j, err));
    WF_TRY(wf_job_enter(m, j, WF_JOB_GOES_BACK, NULL, err));
    return halt_all(m, j, err);
}

wf_status wf_master_fail_job(wf_master *m, wf_job *j, const wf_err *why, wf_err *err)
{
    WF_TRY(wf_cut_abort(m, j, err));
    WF_TRY(wf_job_enter(m, j, WF_JOB_FAIL, why, err));
    return halt_all(m, j, err);
}

wf_status wf_master_put_down(wf_master *m, wf_err *err)
{
    wf_job *j = m->job;

    wf_assert(wf_job_over(j->state));
    WF_TRY(wf_cut_abort(m, j, err));
    WF_TRY(halt_all(m, j, err));
    wf_epoch_close(j);
    wf_bytes_close(&j->start);
    wf_job_take(m, NULL);
    return WF_OK;
}

/* Whether there are splits that kill whoever trains them is seen where one has died. */
static wf_status after_death(wf_master *m, wf_job *j, const char *death, wf_err *err)
{
    uint64_t id;
    wf_err why;

    if (wf_job_over(j->state) || !wf_ledger_deadly(&j->epoch->ledger, &id))
        return WF_OK;
    if (!wf_left_out_set_aside(m, j, death, &why))
        return wf_master_fail_job(m, j, &why, err);
    return wf_job_journal(m, j, err);
}

/* Whether the job can do without the variables of a member that is lost: others have all of them,
 * and have begun to train. */
static bool is_spare(const wf_master *m, const wf_job *j, const wf_member *who)
{
    if (!wf_member_holds_variables(m, who))
        return true;
    if (who->task.role == WF_ROLE_PS || j->state == WF_JOB_STARTING)
        return false;
    for (uint32_t i = 0; i < m->n_members; i++)
        if (&m->members[i] != who && m->members[i].task.role == WF_ROLE_WORKER &&
            (wf_member_has_part(&m->members[i], j->generation) ||
             m->members[i].state == WF_MEMBER_UNCLAIMED))
            return true;
    return false;
}

/* With a worker that computes a stage the variables of that stage are lost. */
static wf_status lose_stage(wf_master *m, wf_job *j, wf_err *err)
{
    if (wf_job_over(j->state) || !wf_job_has_generation(j) || j->state == WF_JOB_RECOVERING)
        return WF_OK;
    WF_TRY(wf_cut_abort(m, j, err));
    return wf_job_enter(m, j, WF_JOB_LOST, NULL, err);
}

wf_status wf_master_take_back(wf_master *m, wf_member *who, const char *death, wf_err *err)
{
    wf_job *j = m->job;

    if (j && wf_member_is_stage(m, who) && !wf_member_may_have_job(m, who))
        return lose_stage(m, j, err);
    if (!j || who->generation != j->generation)
        return WF_OK;
    if (who->task.role == WF_ROLE_WORKER) {
        j->lost_steps += who->steps;
        WF_TRY(wf_saving_on_lost(m, j, who, err));
        wf_epoch_lost(j, who, death != NULL);
        if (death)
            WF_TRY(after_death(m, j, death, err));
    }
    if (is_spare(m, j, who) || wf_job_over(j->state) || !wf_job_has_generation(j) ||
        j->state == WF_JOB_RECOVERING)
        return WF_OK;
    WF_TRY(wf_cut_abort(m, j, err));
    return wf_job_enter(m, j, WF_JOB_LOST, NULL, err);
}

wf_status wf_master_lose(wf_master *m, wf_member *who, bool ended, const char *reason, wf_err *err)
{
    char text[32], returned[128];

    if (!who->incarnation)
        return WF_OK;
    who->returned = (wf_returned){0};
    m->facts_known = false;
    WF_LOG_WARN("member.lost", "task=%s reason=\"%s\"", wf_task_str(who->task, text, sizeof text),
                reason);
    wf_members_retire(m, who->incarnation);
    if (wf_member_is_live(who)) {
        if (m->job && !wf_job_over(m->job->state)) {
            wf_returned_note(m, m->job, who);
            m->job->lost_workers += who->task.role == WF_ROLE_WORKER;
        }
        if (m->job)
            wf_job_note(m, m->job, "task.lost", "%s: %s%s", text, reason,
                        wf_returned_text(who, returned, sizeof returned));
        WF_TRY(wf_master_take_back(m, who, ended ? reason : NULL, err));
        if (m->job && !wf_job_over(m->job->state) && who->task.role == WF_ROLE_WORKER)
            WF_TRY(wf_job_journal(m, m->job, err)); /* another master counts it, too */
    }
    wf_member_end(m, who, reason);
    return WF_OK;
}

wf_status wf_master_give_up(wf_master *m, wf_member *who, const char *reason, wf_err *err)
{
    if (who->peer)
        WF_TRY(wf_member_dismiss(m, who->peer, WF_DISMISS_RESTART, err));
    return wf_master_lose(m, who, false, reason, err);
}
