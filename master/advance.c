/* SPDX-License-Identifier: Apache-2.0 */
/* master/advance.c - does what is due: for the job in hand, from its text to workers that train,
 * and with the results of work that took long. */
#include "common/base/clock.h"
#include "common/log/log.h"
#include "master/top.h"
#include "master/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t RETRY_NS = WF_NS_PER_S;

/* ---- the job in hand, state by state ---- */

static wf_status prepare(wf_master *m, const wf_job *j, wf_err *err)
{
    return j->prepared || m->busy ? WF_OK : wf_work_prepare(m, j, err);
}

/* All ps are live: finds, and verifies, what a new generation begins from. */
static wf_status begin_generation(wf_master *m, wf_job *j, wf_err *err)
{
    wf_err why;

    WF_TRY(wf_cut_abort(m, j, err));
    if (m->now_ns < j->retry_ns || m->busy)
        return WF_OK;
    if (j->generation == UINT16_MAX) { /* the header has no room for one more */
        wf_fail(&why, WF_FULL, "look why it fails so often, then give it another name",
                "job %s has been set up %u times", j->name, j->generation);
        return wf_job_enter(m, j, WF_JOB_FAIL, &why, err);
    }
    return wf_work_restore(m, j, j->ending_from ? (int64_t)j->ending_from - 1 : j->from_step, err);
}

static wf_status wait_for_tasks(wf_master *m, wf_job *j, wf_err *err)
{
    if (j->stop_asked)
        return wf_job_stop(m, j, err);
    if (j->state == WF_JOB_QUEUED)
        WF_TRY(wf_job_enter(m, j, WF_JOB_IN_HAND, NULL, err));
    WF_TRY(prepare(m, j, err));
    if (wf_job_over(j->state) || !j->prepared)
        return WF_OK;
    if (j->state == WF_JOB_COMPILING)
        WF_TRY(wf_job_enter(m, j, WF_JOB_COMPILED, NULL, err));
    if (wf_master_facts(m)->variables_here && wf_master_facts(m)->any_worker)
        return begin_generation(m, j, err);
    return WF_OK;
}

static wf_status enter_running(wf_master *m, wf_job *j, wf_job_event event, wf_err *err)
{
    m->view_stale |= m->on_workers; /* for those who add up gradients: wf_generation_tell */
    return wf_job_enter(m, j, event, NULL, err);
}

static wf_status set_up(wf_master *m, wf_job *j, wf_err *err)
{
    if (wf_master_facts(m)->variables_ready)
        return enter_running(m, j, WF_JOB_READY, err);
    for (uint32_t i = 0; i < m->n_members; i++) /* one died meanwhile, or waits to answer */
        if (wf_member_holds_variables(m, &m->members[i]) && m->members[i].state != WF_MEMBER_DOWN &&
            (!wf_member_is_live(&m->members[i]) || m->members[i].generation != j->generation))
            return wf_job_enter(m, j, WF_JOB_LOST, NULL, err);
    return WF_OK;
}

/* A disk or a task that hangs must not keep later checkpoints from being made. A chief that has the
 * right to commit may still do it: only with its incarnation is this cut over for certain. */
static wf_status end_overdue(wf_master *m, wf_job *j, wf_err *err)
{
    char what[128], seconds[32];

    snprintf(seconds, sizeof seconds, "%.0f s", (double)m->conf.cut_ns / 1e9);
    if (j->cut->state == WF_CUT_COMMITTING) {
        wf_member *chief = wf_member_find(m, j->cut->chief);

        wf_assert(chief); /* with its chief a cut ends */
        snprintf(what, sizeof what, "its checkpoint was not committed within %s", seconds);
        return wf_master_give_up(m, chief, what, err);
    }
    for (uint32_t i = 0; i < m->n_members; i++) {
        if (!wf_cut_waits_for(j, &m->members[i]))
            continue;
        snprintf(what, sizeof what, "worker %u did not come to a step's end within %s",
                 m->members[i].task.index, seconds);
        return wf_saving_fail(m, j, false, what, "see its log", err);
    }
    snprintf(what, sizeof what, "the ps did not write their shards within %s", seconds);
    return wf_saving_fail(m, j, false, what,
                          "look whether the disk of checkpoint_dir still answers", err);
}

/* Time in which the master was away does not count, and after it messages may still be unread. */
static bool is_overdue(const wf_master *m, const wf_job *j)
{
    return j->cut->state != WF_CUT_NONE &&
           m->watch.present_ns - j->cut->began_present_ns > m->conf.cut_ns &&
           m->now_ns - m->watch.receiving_since_ns >= m->conf.dead_ns;
}

static wf_status run(wf_master *m, wf_job *j, wf_err *err)
{
    if (wf_master_facts(m)->variables_gone) {
        WF_TRY(wf_cut_abort(m, j, err));
        return wf_job_enter(m, j, WF_JOB_LOST, NULL, err);
    }
    wf_faults_advance(m, j);
    WF_TRY(wf_generation_start(m, j, j->epoch->callbacks.rate, err));
    WF_TRY(is_overdue(m, j) ? end_overdue(m, j, err) : wf_saving_advance(m, j, err));
    if (j->state != WF_JOB_RUNNING && j->state != WF_JOB_STOPPING)
        return WF_OK;
    WF_TRY(wf_placement_advance(m, j, !j->cut_wanted && j->cut->state == WF_CUT_NONE, err));
    WF_TRY(
        wf_epoch_advance(m, j, j->cut->state == WF_CUT_HOLDING, j->cut->state != WF_CUT_NONE, err));
    return !m->busy && wf_growth_wants_listing(m, j) ? wf_work_list(m, j, err) : WF_OK;
}

/* After a restart of the master: what the ps hold decides whether training simply goes on. */
static wf_status resume(wf_master *m, wf_job *j, wf_err *err)
{
    WF_TRY(prepare(m, j, err));
    if (wf_job_over(j->state) || !j->prepared)
        return WF_OK;
    if (m->ps_left_out)
        wf_job_note(m, j, "task.lost", "ps/%u: it is no longer in cluster.yaml",
                    m->ps_left_out - 1);
    if (wf_master_facts(m)->variables_gone || m->ps_left_out) {
        m->ps_left_out = 0;
        return wf_job_enter(m, j, WF_JOB_LOST, NULL, err);
    }
    if (wf_master_facts(m)->variables_kept)
        return enter_running(m, j, j->stop_asked ? WF_JOB_READY_TO_STOP : WF_JOB_READY, err);
    return WF_OK;
}

static wf_job *next_job(const wf_master *m)
{
    for (uint32_t i = 0; i < m->n_jobs; i++)
        if (!wf_job_over(m->jobs[i]->state))
            return m->jobs[i];
    return NULL;
}

static wf_status advance_job(wf_master *m, wf_err *err)
{
    wf_job *j;

    if (m->job && wf_job_over(m->job->state))
        WF_TRY(wf_master_put_down(m, err));
    if (!m->job)
        wf_job_take(m, next_job(m));
    j = m->job;
    if (!j) {
        wf_placement_end(m);
        return WF_OK;
    }
    wf_assert(m->job_number == j->number && m->job_generation == j->generation);
    if (j->state != WF_JOB_RUNNING && j->state != WF_JOB_STOPPING)
        wf_placement_end(m);
    switch (j->state) {
    case WF_JOB_QUEUED:
    case WF_JOB_COMPILING:
    case WF_JOB_WAITING:
    case WF_JOB_RECOVERING:
        return wait_for_tasks(m, j, err);
    case WF_JOB_STARTING:
        return set_up(m, j, err);
    case WF_JOB_RESUMING:
        return resume(m, j, err);
    case WF_JOB_RUNNING:
    case WF_JOB_STOPPING:
        return run(m, j, err);
    default:
        return WF_OK;
    }
}

/* ---- results ---- */

/* The job cannot be what its text says. */
static wf_status refuse(wf_master *m, wf_job *j, const wf_err *why, wf_err *err)
{
    WF_TRY(wf_job_enter(m, j, WF_JOB_FAIL, why, err));
    return wf_master_take_text_back(m, j, err);
}

/* A job was compiled, or could not be. The job takes what came of it, unless it is over or has
 * another text by now. */
static wf_status on_prepared(wf_master *m, wf_job *j, wf_work *w, wf_err *err)
{
    wf_err unfit;

    if (wf_job_over(j->state) || w->texts != j->texts || j->prepared)
        return WF_OK;
    if (w->rc != WF_OK)
        return refuse(m, j, &w->err, err);
    j->prepared = w->prepared;
    w->prepared = NULL;
    if (m->job == j)
        wf_job_learn_holders(m);
    if (wf_generation_check(j, &unfit) == WF_OK) {
        free(j->text_was);
        j->text_was = NULL;
        return WF_OK;
    }
    wf_job_drop_prepared(j); /* a recovery must find the same fault, and not what it is of */
    return refuse(m, j, &unfit, err);
}

static wf_status take_restored(wf_master *m, wf_job *j, const wf_restored *r, wf_err *err)
{
    wf_status rc = WF_OK;

    WF_TRY(wf_restored_give(r, j->prepared, err));
    j->base_step = r->global_step;
    wf_epoch_begin_generation(j);
    wf_cut_begin_generation(j->cut);
    j->cut_wanted = false;
    j->epoch->callbacks = r->callbacks;
    if (j->ending_from) /* nothing is left but to save these weights */
        j->epoch->callbacks.stopped = j->prepared->epochs;
    free(j->passed);
    j->passed = strdup(r->passed ? r->passed : "");
    if (j->passed && j->passed[0])
        wf_job_note(m, j, "ckpt.passed_over", "%s", j->passed);
    if (r->initial) {
        j->next_cut = 0; /* the first epoch sets it */
        if (j->prepared->grows)
            j->n_left_out = 0; /* they were of rounds that are formed anew */
        j->latest = UINT64_MAX;
        j->latest_epoch = 0;
    } else {
        j->latest = r->global_step;
        j->latest_epoch = r->ledger->epoch;
        rc = wf_epoch_restore(m, j, r->ledger, err);
    }
    return rc;
}

/* An epoch that "steps" has ended early is evaluated too, and goes on. */
static bool is_within(const Weft__Ledger *l)
{
    uint64_t done = 0;

    for (size_t i = 0; i < l->n_finished; i++)
        done += l->finished[i]->end - l->finished[i]->begin;
    return done > 0 && done < l->records;
}

/* "generation 2 begins from step 66039; at least 875 steps are lost; it continues in epoch 36". The
 * master knows of the steps that workers have reported, and there may be some more. */
static void tell_restored(wf_master *m, wf_job *j, const wf_restored *r, uint64_t undone)
{
    char lost[80] = "", where[64] = "";

    if (undone)
        snprintf(lost, sizeof lost, "; at least %lu step%s lost", (unsigned long)undone,
                 undone == 1 ? " is" : "s are");
    if (r->initial)
        snprintf(where, sizeof where, "; there was no checkpoint yet");
    else if (!j->ending_from)
        snprintf(where, sizeof where, "; it continues in epoch %u",
                 r->ledger->epoch + 1 + (r->ledger->evaluated && !is_within(r->ledger)));
    wf_job_note(m, j, "job.restored", "generation %u begins from step %lu%s%s", j->generation,
                (unsigned long)r->global_step, lost, where);
}

static wf_status set_up_from(wf_master *m, wf_job *j, const wf_restored *r, wf_err *err)
{
    uint64_t was = wf_job_step(m, j), undone = 0;
    wf_status rc;

    if (was > r->global_step && !j->ending_from)
        undone = was - r->global_step;
    j->undone_steps += undone;
    /* The checkpoint may be of another master's journal. Its own must count as newer than all that
     * it finds, or it could not save a step again that is saved there. */
    if (j->generation < r->generation)
        j->generation = r->generation;
    wf_job_next_generation(m, j);
    rc = wf_job_enter(m, j, WF_JOB_SET_UP, NULL, err); /* M1: the generation is on disk */
    if (rc == WF_OK)
        rc = wf_view_advance(m, j->lost_steps, err);
    if (rc == WF_OK)
        rc = take_restored(m, j, r, err);
    if (rc == WF_OK && !wf_job_over(j->state))
        rc = wf_generation_set_up(m, j, r->initial, r->global_step, j->epoch->callbacks.rate, err);
    if (rc == WF_OK && (!r->initial || undone) && !wf_job_over(j->state))
        tell_restored(m, j, r, undone);
    return rc;
}

/* Where the next generation begins is known, or why it cannot. */
static wf_status on_restored(wf_master *m, wf_job *j, const wf_work *w, wf_err *err)
{
    const wf_err *why = &w->err;

    wf_assert(w->rc != WF_OK || w->restored.initial || w->restored.ledger);
    if (m->job != j || w->entries != j->entries || !j->prepared ||
        !wf_master_facts(m)->variables_here ||
        !wf_master_facts(m)
             ->any_worker) /* much has happened since: what is due now is found anew */
        return WF_OK;
    if (w->rc == WF_IO) { /* a full or failing disk may recover: the job waits, and says why */
        snprintf(j->reason, sizeof j->reason, "%.*s", (int)sizeof j->reason - 1, why->what);
        j->retry_ns = m->now_ns + RETRY_NS;
        wf_job_note(m, j, "job.waits", "%s", why->what);
        return WF_OK;
    }
    return w->rc == WF_OK ? set_up_from(m, j, &w->restored, err)
                          : wf_job_enter(m, j, WF_JOB_FAIL, why, err);
}

/* What the patterns of data that grows name by now. */
static wf_status on_listed(wf_master *m, wf_job *j, wf_work *w, wf_err *err)
{
    if (m->job != j || w->entries != j->entries || j->state != WF_JOB_RUNNING)
        return WF_OK;
    if (w->rc == WF_OK)
        w->err.status = WF_OK;
    return wf_growth_on_listed(m, j, w->list, w->n_list, &w->err, err);
}

static wf_status synced(wf_master *m, wf_work *w, wf_err *err)
{
    WF_TRY(wf_journal_settle(m->journal, &w->batch, err));
    return wf_master_release(m, err);
}

static wf_status done(wf_master *m, wf_work *w, wf_err *err)
{
    wf_job *j = w->job && w->job <= m->n_jobs ? m->jobs[w->job - 1] : NULL;

    if (w->kind == WF_WORK_SYNC)
        return synced(m, w, err);
    wf_assert(m->busy);
    m->busy = false;
    if (!j)
        return WF_OK;
    if (w->kind == WF_WORK_PREPARE)
        return on_prepared(m, j, w, err);
    if (w->kind == WF_WORK_LIST)
        return on_listed(m, j, w, err);
    return on_restored(m, j, w, err);
}

wf_status wf_master_on_work(wf_master *m, wf_work **w, int64_t now_ns, wf_err *err)
{
    wf_status rc;

    m->now_ns = now_ns;
    rc = done(m, *w, err);
    wf_work_free(w);
    return rc;
}

/* Takes the results of work that the master has done itself, where nobody does it for it. True if
 * there were any. */
static wf_status take_finished(wf_master *m, bool *any, wf_err *err)
{
    *any = m->finished != NULL;
    while (m->finished) {
        wf_work *w = m->finished;

        m->finished = w->next;
        WF_TRY(wf_master_on_work(m, &w, m->now_ns, err));
    }
    return WF_OK;
}

wf_status wf_master_advance(wf_master *m, int64_t now_ns, wf_err *err)
{
    bool again = true;

    m->now_ns = now_ns;
    WF_TRY(wf_watch_advance(m, err));
    while (again) {
        WF_TRY(advance_job(m, err));
        WF_TRY(take_finished(m, &again, err));
    }
    WF_TRY(wf_view_advance(m, m->job ? m->job->lost_steps : 0, err));
    if (m->job && (m->job->state == WF_JOB_RUNNING || m->job->state == WF_JOB_STOPPING))
        WF_TRY(wf_generation_tell(m, m->job, err));
    WF_TRY(wf_work_sync(m, err));
    return take_finished(m, &again, err);
}
