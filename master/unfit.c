/* SPDX-License-Identifier: Apache-2.0 */
/* master/unfit.c - a worker that cannot start, or cannot read or compute a step, costs the job that
 * worker, as long as others can do its work.
 *
 * Whose start has failed is asked again after a while, since a disk or memory may be there later.
 * Whose step has failed is given up, and comes back as a new incarnation: the ps remember the steps
 * of the old one. After some failures in one generation it is left alone until the next. When
 * nobody else is left, the fault is the job's: then every worker has met it, or this one alone is
 * there.
 */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "master/state.h"

#include <stdio.h>

enum { MOST_FAILURES = 3 };
static const int64_t RETRY_NS = 10 * WF_NS_PER_S; /* doubles */

static bool is_unfit(const wf_member *who, const wf_job *j)
{
    return who->unfit.failures > 0 && who->unfit.generation == j->generation;
}

bool wf_unfit_is(const wf_member *who, const wf_job *j)
{
    return is_unfit(who, j) && !wf_member_trains(who, j);
}

/* Whether a task trains, may yet start, or has just been lost and may come back. */
static bool may_train(const wf_master *m, const wf_member *who, const wf_job *j)
{
    if (wf_member_trains(who, j))
        return true;
    if (who->task.role != WF_ROLE_WORKER || who->down || is_unfit(who, j))
        return false;
    return who->live || m->now_ns - who->since_ns < m->conf.dead_ns;
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
    who->unfit.retry_ns = m->now_ns + (RETRY_NS << who->unfit.failures) / 2;
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
        wf_fail(&all, why->status, why->mend,
                "%.700s (%s is the last worker; %.200s failed before)", why->what,
                wf_task_str(who->task, name, sizeof name), others);
    return wf_job_fail(m, j, &all, err);
}

wf_status wf_unfit_on_start(wf_master *m, wf_job *j, wf_member *who, const wf_err *why, wf_err *err)
{
    if (is_the_jobs(why) || !others_may_train(m, who, j))
        return fail_everywhere(m, j, who, why, err);
    count_failure(m, j, who);
    wf_master_note(m, j, "task.unfit", "%s", why->what);
    snprintf(who->reason, sizeof who->reason, "%.500s", why->what);
    who->reason_ns = m->now_ns;
    return WF_OK;
}

wf_status wf_unfit_on_fault(wf_master *m, wf_job *j, wf_member *who, const wf_err *why, wf_err *err)
{
    char reason[WF_REASON];

    if (is_the_jobs(why) || !others_may_train(m, who, j))
        return fail_everywhere(m, j, who, why, err);
    count_failure(m, j, who);
    snprintf(reason, sizeof reason, "its step failed: %.480s", why->what);
    return wf_members_give_up(m, who, reason, err);
}

bool wf_unfit_is_barred(const wf_member *who, const wf_job *j)
{
    return is_unfit(who, j) && who->unfit.failures >= MOST_FAILURES;
}

/* One whose start failed counts as started; when its time has come it does not any more. */
void wf_unfit_advance(wf_master *m, wf_job *j)
{
    bool any = false;

    for (uint32_t i = 0; m->any_unfit && i < m->n_members; i++) {
        wf_member *who = &m->members[i];

        if (!is_unfit(who, j) || !who->unfit.retry_ns)
            continue;
        any = true;
        if (m->now_ns < who->unfit.retry_ns || who->unfit.failures >= MOST_FAILURES)
            continue;
        who->unfit.retry_ns = 0;
        if (!who->ready)
            who->generation = 0;
        m->facts.known = false;
    }
    m->any_unfit = any;
}
