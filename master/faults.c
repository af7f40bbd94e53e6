/* SPDX-License-Identifier: Apache-2.0 */
/* master/faults.c - a worker that cannot start, or cannot read or compute a step, costs the job
 * that worker, as long as others can do its work.
 *
 * Whose start has failed is asked again after a while, since a disk or memory may be there later.
 * Whose step has failed is given up, and comes back as a new incarnation: the ps remember the steps
 * of the old one. After some failures in one generation it is left alone until the next. When
 * nobody else is left, the fault is the job's: then every worker has met it, or this one alone is
 * there.
 */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/wire/control.h"
#include "master/top.h"

#include <stdio.h>

static const int64_t START_RETRY_NS = 10 * WF_NS_PER_S; /* doubles */
static const int64_t SETUP_RETRY_NS = WF_NS_PER_S;

static bool is_unfit(const wf_member *who, const wf_job *j)
{
    return who->unfit.failures > 0 && who->unfit.generation == j->generation;
}

bool wf_faults_is_unfit(const wf_member *who, const wf_job *j)
{
    return is_unfit(who, j) && !wf_member_trains(who, j->generation);
}

/* Whether a task trains, may yet start, or has just been lost and may come back. */
static bool may_train(const wf_master *m, const wf_member *who, const wf_job *j)
{
    if (wf_member_trains(who, j->generation))
        return true;
    if (who->task.role != WF_ROLE_WORKER || who->state == WF_MEMBER_DOWN || is_unfit(who, j) ||
        !wf_member_may_have_job(m, who))
        return false;
    return wf_member_is_live(who) || m->now_ns - who->since_ns < m->conf.dead_ns;
}

static bool others_may_train(const wf_master *m, const wf_member *who, const wf_job *j)
{
    for (uint32_t i = 0; i < m->n_members; i++)
        if (&m->members[i] != who && may_train(m, &m->members[i], j))
            return true;
    return false;
}

/* What a job file or a model says is the same for all. */
static bool is_the_jobs(const wf_err *why)
{
    return why->status == WF_USAGE || why->status == WF_UNSUPPORTED;
}

static void count_failure(wf_master *m, wf_job *j, wf_member *who)
{
    if (who->unfit.generation != j->generation)
        who->unfit = (wf_unfit){.generation = j->generation};
    who->unfit.failures++;
    who->unfit.retry_ns = m->now_ns + (START_RETRY_NS << who->unfit.failures) / 2;
    m->any_unfit = true;
}

/* "worker/0 and worker/2 have failed before it": who else has met a fault in this generation. */
static void list_failed(const wf_master *m, const wf_member *who, const wf_job *j, char *text,
                        size_t size)
{
    size_t at = 0;

    text[0] = 0;
    for (uint32_t i = 0; i < m->n_members && at < size; i++) {
        char name[32];

        if (&m->members[i] == who || !is_unfit(&m->members[i], j))
            continue;
        at += (size_t)snprintf(text + at, size - at, "%s%s", at ? ", " : "",
                               wf_task_str(m->members[i].task, name, sizeof name));
    }
}

static wf_status fail_everywhere(wf_master *m, wf_job *j, const wf_member *who, const wf_err *why,
                                 wf_err *err)
{
    char others[256], name[32];
    wf_err all = *why;

    list_failed(m, who, j, others, sizeof others);
    if (others[0])
        wf_fail(&all, why->status, why->hint,
                "%.700s (%s is the last worker; %.200s failed before)", why->what,
                wf_task_str(who->task, name, sizeof name), others);
    return wf_master_fail_job(m, j, &all, err);
}

static wf_status on_failed_start(wf_master *m, wf_job *j, wf_member *who, const wf_err *why,
                                 wf_err *err)
{
    if (is_the_jobs(why) || !others_may_train(m, who, j))
        return fail_everywhere(m, j, who, why, err);
    count_failure(m, j, who);
    m->facts_known = false;
    wf_job_note(m, j, "task.unfit", "%s", why->what);
    wf_member_keep_reason(m, who, why->what);
    return WF_OK;
}

static wf_status on_failed_step(wf_master *m, wf_job *j, wf_member *who, const wf_err *why,
                                wf_err *err)
{
    char reason[WF_REASON];

    if (is_the_jobs(why) || !others_may_train(m, who, j))
        return fail_everywhere(m, j, who, why, err);
    count_failure(m, j, who);
    snprintf(reason, sizeof reason, "its step failed: %.480s", why->what);
    return wf_master_give_up(m, who, reason, err);
}

/* One whose start failed counts as started; when its time has come it does not any more. */
void wf_faults_advance(wf_master *m, wf_job *j)
{
    bool any = false;

    for (uint32_t i = 0; m->any_unfit && i < m->n_members; i++) {
        wf_member *who = &m->members[i];

        if (!is_unfit(who, j) || !who->unfit.retry_ns)
            continue;
        any = true;
        if (m->now_ns < who->unfit.retry_ns || wf_generation_is_barred(who, j))
            continue;
        who->unfit.retry_ns = 0;
        if (who->part == WF_PART_ASKED)
            wf_member_take_part(m, who, WF_PART_LET_GO, 0);
        m->facts_known = false;
    }
    m->any_unfit = any;
}

/* ---- messages ---- */

/* Of data that grows: of the round that was taken last, unless this worker has another one open. */
static wf_status take_round(wf_master *m, wf_job *j, const wf_member *who, wf_found found,
                            wf_err *err)
{
    static const char hint[] = "give every worker the same files, and leave them as they are";
    wf_rounds *r = &j->rounds;
    char text[32];
    wf_err why;

    if (found.round != r->round || found.round == 0)
        return WF_OK;
    if (r->records && r->records != found.train_records) {
        wf_fail(&why, WF_MISMATCH, hint,
                "%s finds %lu records in the files of round %u (%s and others), where %lu were "
                "found before",
                wf_task_str(who->task, text, sizeof text), (unsigned long)found.train_records,
                r->round, r->n_files ? r->files[0].path : "", (unsigned long)r->records);
        return wf_master_fail_job(m, j, &why, err);
    }
    if (r->digest && r->digest != found.train_digest) {
        wf_fail(&why, WF_MISMATCH, hint,
                "%s finds other content in the files of round %u (%s and others) than was found "
                "before",
                wf_task_str(who->task, text, sizeof text), r->round,
                r->n_files ? r->files[0].path : "");
        return wf_master_fail_job(m, j, &why, err);
    }
    r->records = found.train_records;
    r->digest = found.train_digest;
    return WF_OK;
}

wf_status wf_faults_take_found(wf_master *m, wf_job *j, const wf_member *who, wf_found found,
                               wf_err *err)
{
    static const char hint[] = "give every worker the same files";
    wf_epoch *e = j->epoch;
    char text[32];
    wf_err why;

    e->eval_records = found.eval_records;
    if (wf_job_grows(j))
        return take_round(m, j, who, found, err);
    if (!j->prepared && found.train_records == 0) /* data may grow: this master will know */
        return WF_OK;
    if (e->train_records && e->train_records != found.train_records) {
        wf_fail(&why, WF_MISMATCH,
                "give every worker the same files, and train other files in a new run",
                "%s finds %lu training records, where %lu were found before",
                wf_task_str(who->task, text, sizeof text), (unsigned long)found.train_records,
                (unsigned long)e->train_records);
        return wf_master_fail_job(m, j, &why, err);
    }
    if (e->train_digest && found.train_digest && e->train_digest != found.train_digest) {
        wf_fail(&why, WF_MISMATCH, hint,
                "%s finds as many training records as other workers, and other content in them",
                wf_task_str(who->task, text, sizeof text));
        return wf_master_fail_job(m, j, &why, err);
    }
    e->train_records = found.train_records;
    if (found.train_digest)
        e->train_digest = found.train_digest;
    return WF_OK;
}

static wf_status take_outcome(wf_master *m, wf_job *j, wf_member *who, const Weft__Outcome *body,
                              wf_err *err)
{
    who->round = body->round;
    wf_near_take(j, body->n_files, body->files);
    return wf_faults_take_found(
        m, j, who,
        (wf_found){body->train_records, body->train_digest, body->eval_records, body->round}, err);
}

wf_status wf_faults_on_round(wf_master *m, wf_job *j, wf_member *who, const wf_msg *msg,
                             wf_err *err)
{
    Weft__Outcome *body = NULL;
    wf_status rc;

    WF_TRY(wf_control_get(msg, &weft__outcome__descriptor, &body, err));
    rc = take_outcome(m, j, who, body, err);
    wf_control_free(&body);
    return rc;
}

static wf_status lose_generation(wf_master *m, wf_job *j, const wf_err *why, wf_err *err)
{
    wf_job_note(m, j, "job.variables_lost", "%s", why->what);
    WF_TRY(wf_cut_abort(m, j, err));
    return wf_job_enter(m, j, WF_JOB_LOST, NULL, err);
}

wf_status wf_faults_on_ready(wf_master *m, wf_job *j, wf_member *who, const wf_msg *msg,
                             wf_err *err)
{
    Weft__Outcome *body = NULL;
    wf_status rc = WF_OK;
    char text[32];
    wf_err why;

    WF_TRY(wf_control_get(msg, &weft__outcome__descriptor, &body, err));
    if (body->status == WF_IO &&
        who->task.role == WF_ROLE_PS) { /* its disk may recover: once more */
        j->retry_ns = m->now_ns + SETUP_RETRY_NS;
        wf_job_note(m, j, "job.waits", "%s", body->what);
        rc = wf_cut_abort(m, j, err);
        if (rc == WF_OK)
            rc = wf_job_enter(m, j, WF_JOB_LOST, NULL, err);
    } else if (body->status == WF_AGAIN && m->n_stages > 0) { /* another stage's worker is gone */
        wf_fail(&why, WF_AGAIN, NULL, "%s", body->what);
        rc = lose_generation(m, j, &why, err);
    } else if (body->status != WF_OK) {
        wf_fail(&why, (wf_status)body->status, body->hint, "%s%s%s",
                who->task.role == WF_ROLE_WORKER ? wf_task_str(who->task, text, sizeof text) : "",
                who->task.role == WF_ROLE_WORKER ? ": " : "", body->what);
        rc = who->task.role == WF_ROLE_WORKER ? on_failed_start(m, j, who, &why, err)
                                              : wf_master_fail_job(m, j, &why, err);
    } else {
        wf_member_take_part(m, who, WF_PART_WAS_DONE, j->generation);
        if (who->task.role == WF_ROLE_PS)
            who->view_acked = msg->head.view;
        else
            rc = take_outcome(m, j, who, body, err);
        m->view_stale |= m->on_workers; /* it is among those who add up gradients */
    }
    wf_control_free(&body);
    return rc;
}

wf_status wf_faults_on_fault(wf_master *m, wf_job *j, wf_member *who, const wf_msg *msg,
                             wf_err *err)
{
    Weft__Fault *body = NULL;
    bool again;
    wf_err why;

    if (j->state == WF_JOB_RECOVERING) /* that generation is over in any case */
        return WF_OK;
    WF_TRY(wf_control_get(msg, &weft__fault__descriptor, &body, err));
    wf_fail(&why, (wf_status)body->status, body->hint, "%s", body->what);
    /* A master that has just begun does not know yet what the job wants in this case. The step
     * comes again, and with it the fault. */
    again = why.status == WF_NUMERIC &&
            (!j->prepared || wf_left_out_roll_back(m, j, body->split, &why));
    wf_control_free(&body);
    if (again)
        return wf_master_roll_back(m, j, err);
    if (why.status == WF_AGAIN &&
        (m->n_stages > 0 || wf_member_holds_variables(m, who))) /* nobody has them any more */
        return lose_generation(m, j, &why, err);
    if (who->task.role == WF_ROLE_WORKER && why.status != WF_NUMERIC)
        return on_failed_step(m, j, who, &why, err);
    return wf_master_fail_job(m, j, &why, err);
}
