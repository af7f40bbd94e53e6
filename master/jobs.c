/* SPDX-License-Identifier: Apache-2.0 */
/* master/jobs.c - the life cycle of jobs: one in hand at a time, first come first served. */
#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/optim/rule.h"
#include "common/wire/control.h"
#include "master/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_JOBS = 4096,
    VIEW_ROOM = 2 << 20,        /* bytes, of the view that goes with a message */
    MOST_START_BYTES = 64 << 20 /* of starts in one iteration: the loop must not stay away long */
};
static const int64_t RETRY_NS = WF_NS_PER_S;

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

static void drop_prepared(wf_job *j)
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
    drop_prepared(it);
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
    drop_prepared(j);
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

/* ---- beginning a generation ---- */

/* What no message could carry, or would be of a job of another name, is said now and to whoever
 * submitted it. */
static wf_status check_prepared(const wf_job *j, wf_err *err)
{
    const wf_prepared *p = j->prepared;
    size_t start = weft__start__get_packed_size(&p->start);
    size_t setup = weft__setup__get_packed_size(&p->setup);

    if (strcmp(p->start.job, j->name) != 0)
        return wf_fail(err, WF_USAGE, NULL, "job %s was submitted with the file of job %s", j->name,
                       p->start.job);
    if (setup > wf_kind_find(WF_SETUP)->control_limit - VIEW_ROOM)
        return wf_fail(
            err, WF_FULL, "raise slice_bytes",
            "the list of variables and slices of job %s takes %zu bytes, that is too much", j->name,
            setup);
    if (start > wf_kind_find(WF_START)->control_limit - VIEW_ROOM)
        return wf_fail(err, WF_FULL, "store large constants of the model as float32",
                       "the graphs of job %s take %zu bytes, that is too much", j->name, start);
    return WF_OK;
}

static wf_status prepare(wf_master *m, const wf_job *j, wf_err *err)
{
    return m->busy ? WF_OK : wf_work_prepare(m, j, err);
}

wf_status wf_job_on_prepared(wf_master *m, wf_job *j, uint32_t texts, wf_prepared **p, wf_status rc,
                             const wf_err *why, wf_err *err)
{
    wf_err unfit;

    if (wf_job_over(j->state) || texts != j->texts || j->prepared)
        return WF_OK;
    if (rc != WF_OK)
        return wf_job_enter(m, j, WF_JOB_FAILED, why, err);
    j->prepared = *p;
    *p = NULL;
    if (check_prepared(j, &unfit) == WF_OK)
        return WF_OK;
    drop_prepared(j); /* a recovery must find the same fault, and not what it is of */
    return wf_job_enter(m, j, WF_JOB_FAILED, &unfit, err);
}

static wf_status send_setup(wf_master *m, wf_job *j, wf_member *who, const wf_restored *r,
                            wf_err *err)
{
    Weft__Setup body = j->prepared->setup;
    Weft__Option rate = WEFT__OPTION__INIT, *options[WF_MAX_SETTINGS];
    Weft__View view;
    wf_status rc;

    WF_TRY(wf_view_make(m, &view, err));
    memcpy(options, body.options, body.n_options * sizeof(*options));
    for (size_t i = 0; i < body.n_options && j->callbacks.rate > 0; i++)
        if (strcmp(options[i]->name, "learning_rate") == 0) {
            rate.name = options[i]->name;
            rate.value = j->callbacks.rate;
            options[i] = &rate;
        }
    body.options = options;
    who->tuned = j->callbacks.rate;
    body.view = &view;
    body.initial = r->initial;
    body.restore_step = r->global_step;
    body.checkpoint_dir = m->checkpoint_dir;
    body.job_id = j->id;
    who->generation = j->generation;
    who->ready = false;
    m->facts.known = false;
    rc = wf_master_say(m, who, WF_SETUP, &body.base, err);
    wf_view_free(&view);
    return rc;
}

static wf_status take_restored(wf_master *m, wf_job *j, wf_restored *r, wf_err *err)
{
    wf_status rc = WF_OK;

    j->base_step = r->global_step;
    j->lost_steps = 0;
    j->evaluated = false;
    wf_evaluation_close(j);
    j->cut = (wf_cut){0};
    j->cut_wanted = false;
    j->marked_cut = 0;
    j->cut_failures = 0;
    j->n_metrics = 0;
    j->callbacks = r->callbacks;
    if (j->ending_from) /* nothing is left but to save these weights */
        j->callbacks.stopped = j->prepared->epochs;
    free(j->passed);
    j->passed = strdup(r->passed ? r->passed : "");
    wf_ledger_close(&j->ledger);
    if (j->passed && j->passed[0])
        wf_master_note(m, j, "ckpt.passed_over", "%s", j->passed);
    if (r->initial) {
        j->next_cut = 0; /* the first epoch sets it */
        if (j->latest != UINT64_MAX)
            j->latest = UINT64_MAX;
    } else {
        j->latest = r->global_step;
        rc = wf_training_restore(m, j, r->ledger, err);
    }
    return rc;
}

/* All ps are live: a new generation begins from the newest checkpoint (or the first values), once
 * it is found and verified. */
static wf_status begin_generation(wf_master *m, wf_job *j, wf_err *err)
{
    wf_err why;

    WF_TRY(wf_cuts_abort(m, j, err));
    if (m->now_ns < j->retry_ns || m->busy)
        return WF_OK;
    if (j->generation == UINT16_MAX) { /* the header has no room for one more */
        wf_fail(&why, WF_FULL, "look why it fails so often, then give it another name",
                "job %s has been set up %u times", j->name, j->generation);
        return wf_job_enter(m, j, WF_JOB_FAILED, &why, err);
    }
    return wf_work_restore(m, j, j->ending_from ? (int64_t)j->ending_from - 1 : j->from_step, err);
}

static wf_status set_up_from(wf_master *m, wf_job *j, wf_restored *r, wf_err *err)
{
    wf_status rc;

    j->generation++;
    m->facts.known = false;
    j->lost_steps = 0;
    for (uint32_t i = 0; i < m->n_members; i++)
        m->members[i].steps = 0;
    rc = wf_job_enter(m, j, WF_JOB_SETTING_UP, NULL, err); /* M1: the generation is on disk */
    if (rc == WF_OK)
        rc = wf_members_view(m, err);
    if (rc == WF_OK)
        rc = take_restored(m, j, r, err);
    for (uint32_t i = 0; rc == WF_OK && !wf_job_over(j->state) && i < m->n_members; i++)
        if (m->members[i].task.role == WF_ROLE_PS)
            rc = send_setup(m, j, &m->members[i], r, err);
    if (rc == WF_OK && !r->initial && !wf_job_over(j->state))
        wf_master_note(m, j, "job.restored", "generation %u begins from step %lu", j->generation,
                       (unsigned long)r->global_step);
    return rc;
}

wf_status wf_job_on_restored(wf_master *m, wf_job *j, uint64_t entries, wf_restored *r,
                             wf_status rc, const wf_err *why, wf_err *err)
{
    if (m->job != j || entries != j->entries || !j->prepared || !wf_master_facts(m)->ps_live ||
        !wf_master_facts(m)
             ->any_worker) /* much has happened since: what is due now is found anew */
        return WF_OK;
    if (rc == WF_IO) { /* a full or failing disk may mend: the job waits, and says why */
        snprintf(j->reason, sizeof j->reason, "%.*s", (int)sizeof j->reason - 1, why->what);
        j->retry_ns = m->now_ns + RETRY_NS;
        wf_master_note(m, j, "job.waits", "%s", why->what);
        return WF_OK;
    }
    return rc == WF_OK ? set_up_from(m, j, r, err) : wf_job_enter(m, j, WF_JOB_FAILED, why, err);
}

/* A start is the same for all workers but for its last fields: in protobuf a message that is
 * written in two parts is both of them. */
static wf_status pack_start(wf_job *j, wf_err *err)
{
    size_t n = weft__start__get_packed_size(&j->prepared->start);
    uint8_t *to;

    if (j->start.size)
        return WF_OK;
    to = wf_bytes_extend(&j->start, n);
    if (!to)
        return wf_fail_nomem(err, n);
    weft__start__pack(&j->prepared->start, to);
    return WF_OK;
}

static wf_status make_start(wf_master *m, wf_job *j, wf_msg *msg, wf_err *err)
{
    Weft__Start own = WEFT__START__INIT;
    Weft__View view;
    uint8_t *to;
    size_t n;

    WF_TRY(pack_start(j, err));
    WF_TRY(wf_view_of_ps(m, &view, err)); /* workers have links to ps only */
    own.view = &view;
    own.base_step = j->base_step;
    own.checkpoint_dir = m->checkpoint_dir;
    own.job_id = j->id;
    n = weft__start__get_packed_size(&own);
    to = wf_msg_control(msg, j->start.size + n);
    if (to) {
        memcpy(to, j->start.data, j->start.size);
        weft__start__pack(&own, to + j->start.size);
    }
    wf_view_free(&view);
    return to ? WF_OK : wf_fail_nomem(err, j->start.size + n);
}

static wf_status send_start(wf_master *m, wf_job *j, wf_member *who, wf_err *err)
{
    wf_msg *msg = NULL;
    wf_status rc;

    who->generation = j->generation;
    who->ready = who->wants = false;
    m->facts.known = false;
    who->steps = 0;
    WF_TRY(wf_net_msg(m->net, WF_START, &msg, err));
    rc = make_start(m, j, msg, err);
    if (rc == WF_OK)
        rc = wf_master_send(m, who->peer, &msg, err);
    wf_net_free_msg(m->net, &msg);
    return rc;
}

/* M4: a worker starts once every ps has set the generation up and has the view that holds it. */
static wf_status start_workers(wf_master *m, wf_job *j, wf_err *err)
{
    const wf_facts *f = wf_master_facts(m);
    size_t bytes = 0;

    if (m->view_stale || !f->to_start || !f->ps_live || !f->ps_have_view)
        return WF_OK;
    for (uint32_t i = 0; i < m->n_members && bytes < MOST_START_BYTES; i++) {
        wf_member *who = &m->members[i];

        if (who->task.role != WF_ROLE_WORKER || !who->registered || !who->peer ||
            who->generation == j->generation || wf_unfit_is_barred(who, j))
            continue;
        WF_TRY(send_start(m, j, who, err));
        bytes += j->start.size;
    }
    return WF_OK;
}

wf_status wf_job_take_records(wf_master *m, wf_job *j, uint64_t train, uint64_t eval, wf_err *err)
{
    wf_err why;

    j->eval_records = eval;
    if (j->train_records && j->train_records != train) {
        wf_fail(&why, WF_MISMATCH, "give every worker the same files",
                "one worker finds %lu training records, another %lu",
                (unsigned long)j->train_records, (unsigned long)train);
        return wf_job_fail(m, j, &why, err);
    }
    j->train_records = train;
    return WF_OK;
}

/* The answer to a set-up or a start. */
wf_status wf_job_on_ready(wf_master *m, wf_member *who, const wf_msg *msg, wf_err *err)
{
    Weft__Outcome *body = NULL;
    wf_job *j = wf_job_of(m, who, msg);
    wf_status rc = WF_OK;
    char text[32];
    wf_err why;

    if (!j)
        return WF_OK;
    WF_TRY(wf_control_get(msg, &weft__outcome__descriptor, &body, err));
    if (body->status == WF_IO && who->task.role == WF_ROLE_PS) { /* its disk may mend: once more */
        j->retry_ns = m->now_ns + RETRY_NS;
        wf_master_note(m, j, "job.waits", "%s", body->what);
        rc = wf_job_enter(m, j, WF_JOB_RECOVERING, NULL, err);
    } else if (body->status != WF_OK) {
        wf_fail(&why, (wf_status)body->status, body->mend, "%s%s%s",
                who->task.role == WF_ROLE_WORKER ? wf_task_str(who->task, text, sizeof text) : "",
                who->task.role == WF_ROLE_WORKER ? ": " : "", body->what);
        rc = who->task.role == WF_ROLE_WORKER ? wf_unfit_on_start(m, j, who, &why, err)
                                              : wf_job_fail(m, j, &why, err);
    } else {
        who->ready = true;
        if (who->task.role == WF_ROLE_PS)
            who->view_acked = msg->head.view;
        else
            rc = wf_job_take_records(m, j, body->train_records, body->eval_records, err);
    }
    wf_control_free(&body);
    return rc;
}

static wf_status wait_for_tasks(wf_master *m, wf_job *j, wf_err *err)
{
    if (j->stop_asked)
        return wf_job_stop(m, j, err);
    if (j->state == WF_JOB_QUEUED)
        WF_TRY(wf_job_enter(m, j, WF_JOB_COMPILING, NULL, err));
    if (!j->prepared)
        WF_TRY(prepare(m, j, err));
    if (wf_job_over(j->state) || !j->prepared)
        return WF_OK;
    if (j->state == WF_JOB_COMPILING)
        WF_TRY(wf_job_enter(m, j, WF_JOB_WAITING, NULL, err));
    if (wf_master_facts(m)->ps_live && wf_master_facts(m)->any_worker)
        return begin_generation(m, j, err);
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
    WF_TRY(start_workers(m, j, err));
    WF_TRY(wf_cuts_advance(m, j, err));
    if (wf_job_over(j->state))
        return WF_OK;
    return wf_training_advance(m, j, err);
}

/* After a restart of the master: what the ps hold decides whether training simply goes on. */
static wf_status resume(wf_master *m, wf_job *j, wf_err *err)
{
    if (!j->prepared)
        WF_TRY(prepare(m, j, err));
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
