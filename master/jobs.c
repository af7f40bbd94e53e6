/* SPDX-License-Identifier: Apache-2.0 */
/* master/jobs.c - the life cycle of jobs: one in hand at a time, first come first served. */
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/wire/control.h"
#include "master/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_JOBS = 4096 };

const char *wf_job_state_name(wf_job_state s)
{
    static const char *const names[] = {"?",       "queued",   "compiling",  "waiting",  "starting",
                                        "running", "resuming", "recovering", "stopping", "done",
                                        "failed",  "stopped",  "interrupted"};

    return (unsigned)s < WF_COUNT(names) ? names[s] : "?";
}

wf_job *wf_job_find(const wf_master *m, const char *name)
{
    for (uint32_t i = 0; i < m->n_jobs; i++)
        if (strcmp(m->jobs[i]->name, name) == 0)
            return m->jobs[i];
    return NULL;
}

void wf_job_drop_prepared(wf_job *j)
{
    wf_prepared_free(&j->prepared);
    wf_bytes_close(&j->start);
}

void wf_job_delete(wf_job **j)
{
    wf_job *it = *j;

    *j = NULL;
    if (!it)
        return;
    wf_job_drop_prepared(it);
    wf_ledger_close(&it->ledger);
    wf_evaluation_close(it);
    for (uint32_t i = 0; i < it->n_lines; i++)
        free(it->lines[i]);
    free(it->lines);
    free(it->passed);
    free(it->text);
    free(it->path);
    free(it);
}

wf_status wf_job_add(wf_master *m, const char *name, const char *text, const char *path,
                     wf_job **out, wf_err *err)
{
    wf_job **list, *j;

    if (m->n_jobs >= MOST_JOBS)
        return wf_fail(err, WF_FULL, "remove old jobs: start with a new state_dir",
                       "the master has %d jobs on its list", MOST_JOBS);
    list = realloc(m->jobs, (m->n_jobs + 1) * sizeof(*list));
    if (!list)
        return wf_fail_nomem(err, (m->n_jobs + 1) * sizeof(*list));
    m->jobs = list;
    j = calloc(1, sizeof *j);
    if (!j)
        return wf_fail_nomem(err, sizeof *j);
    snprintf(j->name, sizeof j->name, "%s", name);
    j->text = strdup(text);
    j->path = strdup(path);
    j->from_step = -1;
    j->latest = j->rollback_latest = UINT64_MAX;
    j->number = m->n_jobs + 1;
    j->id = wf_rng_fold(m->conf.incarnation, j->number);
    if (!j->text || !j->path) {
        wf_job_delete(&j);
        return wf_fail_nomem(err, strlen(text));
    }
    list[m->n_jobs++] = j;
    *out = j;
    return WF_OK;
}

void wf_job_take_back(wf_master *m)
{
    wf_job_delete(&m->jobs[--m->n_jobs]);
}

wf_status wf_job_rewrite(wf_job *j, const char *text, const char *path, wf_err *err)
{
    char *new_text = strdup(text), *new_path = strdup(path);

    if (!new_text || !new_path) {
        free(new_text);
        free(new_path);
        return wf_fail_nomem(err, strlen(text));
    }
    free(j->text);
    free(j->path);
    j->text = new_text;
    j->path = new_path;
    wf_job_drop_prepared(j);
    j->texts++;
    return WF_OK;
}

void wf_job_record(const wf_job *j, Weft__JobRecord *r)
{
    weft__job_record__init(r);
    r->name = (char *)j->name;
    r->state = j->state;
    r->generation = j->generation;
    r->reason = (char *)j->reason;
    r->mend = (char *)j->mend;
    r->number = j->number;
    r->id = j->id;
    r->from_step = j->from_step;
    r->stop = j->stop_asked;
    r->ending_from = j->ending_from;
    r->rollbacks = j->rollbacks;
    r->rollback_latest = j->rollback_latest;
    r->left_out_records = j->left_out_records;
    r->left_out = (Weft__Split **)j->left_out;
    r->n_left_out = j->n_left_out;
}

wf_status wf_job_journal(wf_master *m, const wf_job *j, wf_err *err)
{
    Weft__Record record = WEFT__RECORD__INIT;
    Weft__JobRecord r;

    wf_job_record(j, &r);
    record.job = &r;
    return wf_journal_append(m->journal, &record, err);
}

wf_status wf_job_enter(wf_master *m, wf_job *j, wf_job_state state, const wf_err *why, wf_err *err)
{
    if (why) {
        snprintf(j->reason, sizeof j->reason, "%.*s", (int)sizeof j->reason - 1, why->what);
        snprintf(j->mend, sizeof j->mend, "%s", why->mend);
    } else if (!wf_job_over(state)) {
        j->reason[0] = j->mend[0] = 0;
    }
    j->state = state;
    j->entries++;
    m->facts.known = false;
    WF_TRY(wf_job_journal(m, j, err));
    wf_master_note(m, j, "job.state", "%s%s%s", wf_job_state_name(state), j->reason[0] ? ": " : "",
                   j->reason);
    if (wf_job_over(state))
        j->ended_ns = m->now_ns;
    return WF_OK;
}

wf_status wf_job_stop(wf_master *m, wf_job *j, wf_err *err)
{
    wf_err why;

    wf_fail(&why, WF_STOPPED, NULL, "stopped on request");
    return wf_job_enter(m, j, WF_JOB_STOPPED, &why, err);
}

/* Every task that holds the job lets go of it; the steps that they made stay the job's. */
static wf_status halt_all(wf_master *m, wf_job *j, wf_err *err)
{
    for (uint32_t i = 0; i < m->n_members; i++) {
        wf_member *who = &m->members[i];

        if (who->live && who->peer && who->generation == j->generation)
            WF_TRY(wf_master_say(m, who, WF_HALT, NULL, err));
        if (who->task.role == WF_ROLE_WORKER && who->generation == j->generation)
            j->lost_steps += who->steps;
        who->generation = 0;
        who->ready = who->wants = false;
        who->steps = 0;
        who->samples_per_sec = 0;
    }
    m->facts.known = false;
    return WF_OK;
}

static wf_status roll_back(wf_master *m, wf_job *j, wf_err *err)
{
    WF_TRY(wf_cuts_abort(m, j, err));
    WF_TRY(halt_all(m, j, err));
    return wf_job_enter(m, j, WF_JOB_RECOVERING, NULL, err);
}

wf_status wf_job_fail(wf_master *m, wf_job *j, const wf_err *why, wf_err *err)
{
    WF_TRY(wf_cuts_abort(m, j, err));
    WF_TRY(halt_all(m, j, err));
    return wf_job_enter(m, j, WF_JOB_FAILED, why, err);
}

wf_job *wf_job_of(const wf_master *m, const wf_member *who, const wf_msg *msg)
{
    wf_job *j = m->job;

    if (!j || wf_job_over(j->state) || msg->head.job != (uint16_t)j->number ||
        msg->head.generation != j->generation || who->generation != j->generation)
        return NULL;
    return j;
}

wf_status wf_job_on_fault(wf_master *m, wf_member *who, const wf_msg *msg, wf_err *err)
{
    Weft__Fault *body = NULL;
    wf_job *j = wf_job_of(m, who, msg);
    bool again;
    wf_err why;

    if (!j || j->state == WF_JOB_RECOVERING) /* that generation is over in any case */
        return WF_OK;
    WF_TRY(wf_control_get(msg, &weft__fault__descriptor, &body, err));
    wf_fail(&why, (wf_status)body->status, body->mend, "%s", body->what);
    /* A master that has just begun does not know yet what the job wants in this case. The step
     * comes again, and with it the fault. */
    again =
        why.status == WF_NUMERIC && (!j->prepared || wf_rollback_begin(m, j, body->split, &why));
    wf_control_free(&body);
    if (again)
        return roll_back(m, j, err);
    if (who->task.role == WF_ROLE_WORKER && why.status != WF_NUMERIC)
        return wf_unfit_on_fault(m, j, who, &why, err);
    return wf_job_fail(m, j, &why, err);
}

static wf_status wait_for_tasks(wf_master *m, wf_job *j, wf_err *err)
{
    if (j->stop_asked)
        return wf_job_stop(m, j, err);
    if (j->state == WF_JOB_QUEUED)
        WF_TRY(wf_job_enter(m, j, WF_JOB_COMPILING, NULL, err));
    if (!j->prepared)
        WF_TRY(wf_job_prepare(m, j, err));
    if (wf_job_over(j->state) || !j->prepared)
        return WF_OK;
    if (j->state == WF_JOB_COMPILING)
        WF_TRY(wf_job_enter(m, j, WF_JOB_WAITING, NULL, err));
    if (wf_master_facts(m)->ps_live && wf_master_facts(m)->any_worker)
        return wf_generation_begin(m, j, err);
    return WF_OK;
}

static wf_status set_up(wf_master *m, wf_job *j, wf_err *err)
{
    if (!wf_master_facts(m)->ps_live || wf_master_facts(m)->ps_empty) {
        for (uint32_t i = 0; i < m->n_members; i++) /* one died meanwhile, or waits to answer */
            if (m->members[i].task.role == WF_ROLE_PS &&
                (!m->members[i].live || m->members[i].generation != j->generation))
                return wf_job_enter(m, j, WF_JOB_RECOVERING, NULL, err);
        return WF_OK;
    }
    if (!wf_master_facts(m)->ps_ready)
        return WF_OK;
    return wf_job_enter(m, j, WF_JOB_RUNNING, NULL, err);
}

static wf_status run(wf_master *m, wf_job *j, wf_err *err)
{
    if (wf_master_facts(m)->ps_empty)
        return wf_job_enter(m, j, WF_JOB_RECOVERING, NULL, err);
    wf_unfit_advance(m, j);
    WF_TRY(wf_generation_start(m, j, err));
    WF_TRY(wf_cuts_advance(m, j, err));
    if (wf_job_over(j->state))
        return WF_OK;
    return wf_training_advance(m, j, err);
}

/* After a restart of the master: what the ps hold decides whether training simply goes on. */
static wf_status resume(wf_master *m, wf_job *j, wf_err *err)
{
    if (!j->prepared)
        WF_TRY(wf_job_prepare(m, j, err));
    if (wf_job_over(j->state) || !j->prepared)
        return WF_OK;
    if (wf_master_facts(m)->ps_empty)
        return wf_job_enter(m, j, WF_JOB_RECOVERING, NULL, err);
    if (wf_master_facts(m)->ps_ready)
        return wf_job_enter(m, j, j->stop_asked ? WF_JOB_STOPPING : WF_JOB_RUNNING, NULL, err);
    return WF_OK;
}

static wf_job *next_job(const wf_master *m)
{
    for (uint32_t i = 0; i < m->n_jobs; i++)
        if (!wf_job_over(m->jobs[i]->state))
            return m->jobs[i];
    return NULL;
}

void wf_job_close_ledger(wf_job *j)
{
    if (j->ledger.n) {
        j->last_epoch = j->ledger.epoch + 1;
        j->last_trained = wf_ledger_trained(&j->ledger);
    }
    wf_ledger_close(&j->ledger);
    wf_evaluation_close(j);
}

wf_status wf_job_advance(wf_master *m, wf_err *err)
{
    wf_job *j = m->job;
    const wf_job *was = j;

    if (j && wf_job_over(j->state)) {
        WF_TRY(halt_all(m, j, err));
        wf_job_close_ledger(j);
        wf_bytes_close(&j->start);
        m->job = j = NULL;
    }
    if (!j)
        m->job = j = next_job(m);
    m->facts.known &= m->job == was;
    if (!j)
        return WF_OK;
    switch (j->state) {
    case WF_JOB_QUEUED:
    case WF_JOB_COMPILING:
    case WF_JOB_WAITING:
    case WF_JOB_RECOVERING:
        return wait_for_tasks(m, j, err);
    case WF_JOB_SETTING_UP:
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

/* Whether there are splits that kill whoever trains them is seen where one has died. */
static wf_status after_death(wf_master *m, wf_job *j, const char *death, wf_err *err)
{
    uint64_t id;
    wf_err why;

    if (wf_job_over(j->state) || !j->ledger.n || !wf_ledger_deadly(&j->ledger, &id))
        return WF_OK;
    if (!wf_rollback_set_aside(m, j, death, &why))
        return wf_job_fail(m, j, &why, err);
    return wf_job_journal(m, j, err);
}

wf_status wf_job_lost(wf_master *m, wf_member *who, const char *death, wf_err *err)
{
    wf_job *j = m->job;

    if (!j || who->generation != j->generation)
        return WF_OK;
    if (who->task.role == WF_ROLE_WORKER) {
        j->lost_steps += who->steps;
        WF_TRY(wf_cuts_lost(m, j, who, err));
        if (j->ledger.n)
            wf_ledger_release(&j->ledger, who->incarnation, death != NULL);
        j->marked_cut = 0; /* it may have carried the mark */
        wf_evaluation_lost(j, who);
        return death ? after_death(m, j, death, err) : WF_OK;
    }
    if (j->state == WF_JOB_RUNNING || j->state == WF_JOB_STOPPING ||
        j->state == WF_JOB_SETTING_UP || j->state == WF_JOB_RESUMING) {
        WF_TRY(wf_cuts_abort(m, j, err));
        return wf_job_enter(m, j, WF_JOB_RECOVERING, NULL, err);
    }
    return WF_OK;
}
