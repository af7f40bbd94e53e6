/* SPDX-License-Identifier: Apache-2.0 */
/* master/replay.c - the journal's records become the master's state again. */
#include "common/wire/control.h"
#include "master/top.h"

#include <stdio.h>
#include <string.h>

/* What was known of the generation before is void; the ledger of this one follows, unless the
 * master ended before it was there: then the workers say what there is to train. */
static void begin_replayed_generation(wf_master *m, wf_job *j)
{
    wf_epoch_begin_generation(j);
    wf_cut_begin_generation(j->cut);
    j->base_step = j->lost_steps = j->next_cut = 0;
    for (uint32_t i = 0; i < m->n_members; i++)
        wf_member_leave_job(m, &m->members[i]);
}

static wf_status replay_job(wf_master *m, const Weft__JobRecord *r, wf_err *err)
{
    wf_job *j = r->number && r->number <= m->n_jobs ? m->jobs[r->number - 1] : NULL;

    if (!wf_run_name_ok(r->name) || (j && strcmp(j->name, r->name) != 0))
        return wf_fail(err, WF_CORRUPT, "use the release of weft that wrote it",
                       "the journal has \"%.80s\" as job %u", r->name, r->number);
    if (!j)
        WF_TRY(wf_master_add_job(m, r->name, r->text, r->path, &j, err));
    if (r->text[0])
        WF_TRY(wf_job_rewrite(j, r->text, r->path, err));
    if (r->id)
        j->id = r->id;
    WF_TRY(wf_job_replay_state(j, r->state, err));
    if (j->state == WF_JOB_REMOVED)
        WF_TRY(wf_job_rewrite(j, "", "", err));
    j->stop_asked = r->stop;
    if (j->generation != r->generation)
        begin_replayed_generation(m, j);
    j->generation = (uint16_t)r->generation;
    j->from_step = r->from_step;
    j->ending_from = r->ending_from;
    j->undone_steps = r->undone_steps;
    j->lost_workers = r->lost_workers;
    wf_left_out_replay(j, r);
    if (j->epoch->ledger.n) /* one that was set aside within the epoch */
        wf_left_out_apply(j);
    snprintf(j->reason, sizeof j->reason, "%s", r->reason);
    snprintf(j->hint, sizeof j->hint, "%s", r->hint);
    return WF_OK;
}

static void replay_finished(wf_master *m, const Weft__SplitDone *r)
{
    wf_ledger *l;

    if (!m->job)
        return;
    l = &m->job->epoch->ledger;
    for (size_t i = 0; i < r->n_splits; i++)
        if (r->splits[i]->epoch == l->epoch)
            wf_ledger_finish(l, r->splits[i]->id, 0);
    wf_members_replay_steps(m, r->incarnation, r->steps, m->job->generation);
}

static void replay_cut(wf_master *m, const Weft__CutRecord *r)
{
    wf_job *j = m->job;

    if (!j)
        return;
    wf_cut_replay(j, r);
    for (size_t i = 0; i < r->n_workers; i++)
        wf_members_replay_steps(m, r->workers[i]->incarnation, r->workers[i]->steps, j->generation);
    if (r->committed && r->asked)
        wf_callbacks_saved(&j->epoch->callbacks, r->step, j->epoch->ledger.epoch);
}

/* Nothing of it has been set up yet. */
static bool is_waiting_its_turn(const wf_job *j)
{
    return j->state == WF_JOB_QUEUED || j->state == WF_JOB_COMPILING;
}

/* A new supervisor: all processes of the one before have ended, and with them what ran. */
static void replay_session(wf_master *m, const char *session)
{
    for (uint32_t i = 0; i < m->n_jobs; i++) {
        wf_job *j = m->jobs[i];

        if (wf_job_over(j->state) || is_waiting_its_turn(j))
            continue;
        j->lost_steps = wf_job_step(m, j) - j->base_step; /* what is lost with the processes */
        wf_job_move(j, WF_JOB_CLUSTER_ENDED);
        snprintf(j->reason, sizeof j->reason, "every process had ended");
        snprintf(j->hint, sizeof j->hint, "go on with: weft recover %s", j->name);
    }
    for (uint32_t i = 0; i < m->n_members; i++) {
        m->members[i].incarnation = 0;
        if (wf_member_is_live(&m->members[i]))
            wf_member_move(m, &m->members[i], WF_MEMBER_LOST);
    }
    m->job = NULL;
    m->other_session = strcmp(session, m->session) != 0;
}

static void replay_view(wf_master *m, const Weft__View *view)
{
    wf_members_replay(m, view, m->job ? m->job->generation : 0);
    if (m->job)
        m->job->lost_steps = view->lost_steps;
}

/* Of a snapshot alone. */
static void replay_retired(wf_master *m, const Weft__Retired *r)
{
    for (size_t i = 0; i < r->n_incarnations; i++)
        wf_members_retire(m, r->incarnations[i]);
}

static void replay_job_state(wf_job *j, const Weft__JobState *r)
{
    j->lost_steps = r->lost_steps;
    j->cut->number = r->cut;
    j->latest = r->latest ? r->latest - 1 : UINT64_MAX;
    j->cut->n_saved = r->checkpoints;
    j->epoch->last_epoch = r->last_epoch;
    j->epoch->last_trained = r->last_trained;
}

wf_status wf_master_replay(void *master, const Weft__Record *r, wf_err *err)
{
    wf_master *m = master;

    if (r->number || r->view) /* a view without a number: there was no job in hand */
        m->job = r->number && r->number <= m->n_jobs ? m->jobs[r->number - 1] : NULL;
    if (r->session[0])
        replay_session(m, r->session);
    if (r->view)
        replay_view(m, r->view);
    if (r->job)
        WF_TRY(replay_job(m, r->job, err));
    if (r->round && m->job)
        WF_TRY(wf_growth_replay(m->job, r->round, err));
    if (r->epoch && m->job)
        WF_TRY(wf_epoch_replay(m, m->job, r->epoch, err));
    if (r->finished)
        replay_finished(m, r->finished);
    if (r->cut)
        replay_cut(m, r->cut);
    if (r->retired)
        replay_retired(m, r->retired);
    if (r->job_state && m->job)
        replay_job_state(m->job, r->job_state);
    return WF_OK;
}

static wf_status begin_session(wf_master *m, wf_err *err)
{
    Weft__Record record = WEFT__RECORD__INIT;

    record.session = m->session;
    WF_TRY(wf_journal_append(m->journal, &record, err));
    WF_TRY(wf_journal_commit(m->journal, err));
    replay_session(m, m->session);
    m->other_session = false;
    return WF_OK;
}

/* What was under way goes on: a job that ran is resumed, one that was not yet running begins anew.
 */
static void take_up_jobs(wf_master *m)
{
    for (uint32_t i = 0; i < m->n_jobs; i++) {
        wf_job *j = m->jobs[i];

        if (wf_job_over(j->state)) {
            wf_epoch_close(j);
            j->ended_ns = m->now_ns;
        } else if (wf_states_next(&wf_job_states, j->state, WF_JOB_RESTARTED) >= 0) {
            j->stop_asked |= j->state == WF_JOB_STOPPING;
            wf_job_move(j, WF_JOB_RESTARTED);
        }
    }
}

wf_status wf_master_take_up(wf_master *m, wf_err *err)
{
    if (m->other_session)
        WF_TRY(begin_session(m, err));
    take_up_jobs(m);
    if (m->job && (wf_job_over(m->job->state) || is_waiting_its_turn(m->job)))
        m->job = NULL;
    wf_job_take(m, m->job);
    m->replaying = false;
    return WF_OK;
}
