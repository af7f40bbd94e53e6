/* SPDX-License-Identifier: Apache-2.0 */
/* master/generation.c - from a job's text to workers that train: it is compiled, the ps are set up
 * from the newest checkpoint or first values, and then the workers start. */
#include "common/base/clock.h"
#include "common/optim/rule.h"
#include "common/wire/control.h"
#include "master/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    VIEW_ROOM = 2 << 20,        /* bytes, of the view that goes with a message */
    MOST_START_BYTES = 64 << 20 /* of starts in one iteration: the loop must not stay away long */
};
static const int64_t RETRY_NS = WF_NS_PER_S;

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

wf_status wf_job_prepare(wf_master *m, const wf_job *j, wf_err *err)
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
    wf_job_drop_prepared(j); /* a recovery must find the same fault, and not what it is of */
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

wf_status wf_generation_begin(wf_master *m, wf_job *j, wf_err *err)
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

wf_status wf_generation_start(wf_master *m, wf_job *j, wf_err *err)
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
