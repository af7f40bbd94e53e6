/* SPDX-License-Identifier: Apache-2.0 */
/* master/job/list.c - the jobs that were submitted, and the one in hand. */
#include "common/base/rng.h"
#include "common/compile/strategy.h"
#include "common/session/prediction.h"
#include "master/job/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_JOBS = 4096 };

wf_job *wf_job_find(const wf_master *m, const char *name)
{
    wf_job *newest = NULL;
    uint32_t most = 0;

    for (uint32_t i = 0; i < m->n_jobs; i++) {
        wf_job *j = m->jobs[i];
        char job[WF_RUN_NAME];
        uint32_t run = wf_run_split(j->name, job);

        if (j->state == WF_JOB_REMOVED)
            continue;
        if (strcmp(j->name, name) == 0 && run)
            return j;
        if (strcmp(job, name) == 0 && (!newest || run > most)) {
            newest = j;
            most = run;
        }
    }
    return newest;
}

wf_job *wf_job_find_live(const wf_master *m, const char *job)
{
    for (uint32_t i = 0; i < m->n_jobs; i++) {
        char its[WF_RUN_NAME];

        wf_run_split(m->jobs[i]->name, its);
        if (strcmp(its, job) == 0 && !wf_job_over(m->jobs[i]->state))
            return m->jobs[i];
    }
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
    wf_rounds_close(&it->rounds);
    wf_job_lines_close(&it->lines);
    free(it->passed);
    free(it->text);
    free(it->text_was);
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

void wf_job_learn_holders(wf_master *m)
{
    const wf_prepared *p = m->job ? m->job->prepared : NULL;
    bool on_workers =
        !m->predicts && (m->n_ps == 0 || (p && p->strategy && p->strategy->on_worker));

    m->facts_known &= m->on_workers == on_workers && m->n_stages == (p ? p->start.n_stages : 0);
    m->on_workers = on_workers;
    m->n_stages = 0;
    for (size_t i = 0; p && i < p->start.n_stages; i++)
        m->stages[m->n_stages++] = p->start.stages[i]->worker;
}

void wf_job_take(wf_master *m, wf_job *j)
{
    wf_assert(!j || m->jobs[j->number - 1] == j);
    m->facts_known &= m->job == j;
    m->job = j;
    m->predicts = j && wf_prediction_is(j->text);
    wf_job_learn_holders(m);
    m->job_number = j ? (uint16_t)j->number : 0;
    m->job_generation = j ? j->generation : 0;
}

void wf_job_next_generation(wf_master *m, wf_job *j)
{
    wf_assert(m->job == j && j->generation < UINT16_MAX);
    j->generation++;
    j->lost_steps = 0;
    for (uint32_t i = 0; i < m->n_members; i++)
        m->members[i].steps = 0;
    wf_job_take(m, j);
    m->facts_known = false;
}

wf_job *wf_job_of(const wf_master *m, const wf_member *who, const wf_msg *msg)
{
    wf_job *j = m->job;

    if (!j || !wf_job_has_generation(j) || who->part == WF_PART_NONE ||
        msg->head.job != m->job_number || msg->head.generation != j->generation ||
        who->generation != j->generation)
        return NULL;
    return j;
}
