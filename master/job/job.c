/* SPDX-License-Identifier: Apache-2.0 */
/* master/job/job.c - the life cycle of a job, its record in the journal and its events. */
#include "master/job/job.h"
#include "common/base/size.h"
#include "common/log/log.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the life cycle ---- */

static const char *const states[] = {"new",     "queued",   "compiling",   "waiting",  "starting",
                                     "running", "resuming", "recovering",  "stopping", "done",
                                     "failed",  "stopped",  "interrupted", "removed"};
static const char *const events[] = {
    "submitted",  "taken in hand",   "compiled",         "set up",
    "ready",      "ready to stop",   "finished",         "generation lost",
    "goes back",  "to be recovered", "stop asked",       "stopped on request",
    "has failed", "cluster ended",   "master restarted", "removed"};

#define S(name) WF_STATE(WF_JOB_##name)
enum {
    OVER = S(DONE) | S(FAILED) | S(STOPPED) | S(INTERRUPTED),
    IN_GENERATION = S(STARTING) | S(RUNNING) | S(RESUMING) | S(STOPPING),
    SET_UP_BEFORE = IN_GENERATION | S(WAITING) | S(RECOVERING),
    ALIVE = SET_UP_BEFORE | S(QUEUED) | S(COMPILING),
};

static const wf_edge edges[] = {
    {OVER | S(NEW), WF_JOB_SUBMITTED, WF_JOB_QUEUED},
    {S(QUEUED), WF_JOB_IN_HAND, WF_JOB_COMPILING},
    {S(COMPILING), WF_JOB_COMPILED, WF_JOB_WAITING},
    {S(WAITING) | S(RECOVERING), WF_JOB_SET_UP, WF_JOB_STARTING},
    {S(STARTING) | S(RESUMING), WF_JOB_READY, WF_JOB_RUNNING},
    {S(RESUMING), WF_JOB_READY_TO_STOP, WF_JOB_STOPPING},
    {S(RUNNING), WF_JOB_FINISHED, WF_JOB_DONE},
    {IN_GENERATION | S(RECOVERING), WF_JOB_LOST, WF_JOB_RECOVERING},
    {IN_GENERATION, WF_JOB_GOES_BACK, WF_JOB_RECOVERING},
    {OVER, WF_JOB_RECOVER, WF_JOB_RECOVERING},
    {S(RUNNING), WF_JOB_STOP_ASKED, WF_JOB_STOPPING},
    {ALIVE & ~S(RUNNING), WF_JOB_STOP_ASKED, WF_STATE_SAME},
    {ALIVE, WF_JOB_STOP, WF_JOB_STOPPED},
    {ALIVE, WF_JOB_FAIL, WF_JOB_FAILED},
    {SET_UP_BEFORE, WF_JOB_CLUSTER_ENDED, WF_JOB_INTERRUPTED},
    {S(RUNNING) | S(STOPPING), WF_JOB_RESTARTED, WF_JOB_RESUMING},
    {S(STARTING), WF_JOB_RESTARTED, WF_JOB_RECOVERING},
    {OVER, WF_JOB_REMOVE, WF_JOB_REMOVED},
};

const wf_states wf_job_states = WF_STATES("jobs", states, events, edges);

const char *wf_job_state_name(wf_job_state s)
{
    return (unsigned)s < WF_COUNT(states) ? states[s] : "?";
}

bool wf_job_has_generation(const wf_job *j)
{
    return WF_STATE(j->state) & (IN_GENERATION | S(RECOVERING));
}

void wf_job_move(wf_job *j, wf_job_event event)
{
    j->state = (wf_job_state)wf_states_take(&wf_job_states, j->state, event, j->name);
    j->entries++;
}

wf_status wf_job_replay_state(wf_job *j, uint32_t state, wf_err *err)
{
    if (state == WF_JOB_NEW || state >= WF_COUNT(states))
        return wf_fail(err, WF_CORRUPT, "use the release of weft that wrote it",
                       "job %s has state %u in the journal", j->name, state);
    j->state = (wf_job_state)state;
    return WF_OK;
}

wf_status wf_job_enter(wf_master *m, wf_job *j, wf_job_event event, const wf_err *why, wf_err *err)
{
    wf_job_state was = j->state;
    json_t *more;
    wf_status rc;

    wf_assert(!m->replaying);
    wf_job_move(j, event);
    if (why) {
        snprintf(j->reason, sizeof j->reason, "%.*s", (int)sizeof j->reason - 1, why->what);
        snprintf(j->hint, sizeof j->hint, "%s", why->hint);
    } else if (!wf_job_over(j->state)) {
        j->reason[0] = j->hint[0] = 0;
    }
    m->facts_known = false;
    rc = wf_job_journal(m, j, err);
    if (rc != WF_OK) {
        j->state = was;
        return rc;
    }
    more = json_pack("{s:s}", "hint", j->hint); /* NULL where it is no UTF-8: no more than a hint */
    wf_job_note_with(m, j, "job.state", &more, "%s%s%s", wf_job_state_name(j->state),
                     j->reason[0] ? ": " : "", j->reason);
    if (wf_job_over(j->state))
        j->ended_ns = m->now_ns;
    return WF_OK;
}

wf_status wf_job_stop(wf_master *m, wf_job *j, wf_err *err)
{
    wf_err why;

    wf_fail(&why, WF_STOPPED, NULL, "stopped on request");
    return wf_job_enter(m, j, WF_JOB_STOP, &why, err);
}

/* ---- its record ---- */

void wf_job_record(const wf_job *j, Weft__JobRecord *r)
{
    weft__job_record__init(r);
    r->name = (char *)j->name;
    r->state = j->state;
    r->generation = j->generation;
    r->reason = (char *)j->reason;
    r->hint = (char *)j->hint;
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
    r->undone_steps = j->undone_steps;
    r->lost_workers = j->lost_workers;
}

wf_status wf_job_journal(wf_master *m, const wf_job *j, wf_err *err)
{
    Weft__Record record = WEFT__RECORD__INIT;
    Weft__JobRecord r;

    wf_job_record(j, &r);
    record.job = &r;
    return wf_journal_append(m->journal, &record, err);
}

/* ---- its events ---- */

/* Members work for one job at a time; generations of two jobs may have one number. */
uint64_t wf_job_step(const wf_master *m, const wf_job *j)
{
    uint64_t steps = j->base_step + j->lost_steps;

    for (uint32_t i = 0; j == m->job && i < m->n_members; i++)
        if (m->members[i].task.role == WF_ROLE_WORKER &&
            m->members[i].generation == j->generation && m->members[i].incarnation)
            steps += m->members[i].steps;
    return steps;
}

static void tell(wf_master *m, wf_job *j, const char *kind, const char *text, json_t *numbers)
{
    char line[1200];
    char *json;
    json_t *o;

    WF_LOG_INFO(kind, "job=%s %s", j->name, text);
    snprintf(line, sizeof line, "%s %s", kind, text);
    wf_job_lines_add(&j->lines, line);
    if (!m->conf.ops.note || m->replaying)
        return;
    o = json_pack("{s:s, s:s, s:i, s:I, s:s}", "event", kind, "job", j->name, "generation",
                  (int)j->generation, "step", (json_int_t)wf_job_step(m, j), "text", text);
    if (o && numbers)
        json_object_update(o, numbers);
    json = o ? json_dumps(o, JSON_COMPACT) : NULL;
    if (json) /* one for which there is no memory is lost: the log has it */
        wf_master_queue_note(m, j->name, json);
    json_decref(o);
}

void wf_job_note(wf_master *m, wf_job *j, const char *kind, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    tell(m, j, kind, text, NULL);
}

void wf_job_note_with(wf_master *m, wf_job *j, const char *kind, json_t **numbers, const char *fmt,
                      ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    tell(m, j, kind, text, *numbers);
    json_decref(*numbers);
    *numbers = NULL;
}
