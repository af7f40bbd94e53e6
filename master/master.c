/* SPDX-License-Identifier: Apache-2.0 */
/* master/master.c - the journal replayed, and messages given to their handlers. */
#include "master/master.h"
#include "common/base/clock.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "master/state.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LINES = 64 };

void wf_prepared_free(wf_prepared **p)
{
    if (*p && (*p)->shares > 0) {
        (*p)->shares--;
        *p = NULL;
    }
    if (!*p)
        return;
    wf_arena_free(&(*p)->arena);
    free(*p);
    *p = NULL;
}

wf_status wf_master_send(wf_master *m, wf_peer *to, wf_msg **msg, wf_err *err)
{
    (*msg)->head.view = m->view;
    if (m->job) {
        (*msg)->head.generation = m->job->generation;
        (*msg)->head.job = (uint16_t)m->job->number;
        (*msg)->head.map = m->job->generation; /* slices move with a generation only */
    }
    WF_TRY(wf_outbox_add_message(&m->outbox, wf_journal_appended(m->journal), to, msg, err));
    return wf_master_release(m, err);
}

wf_status wf_master_release(wf_master *m, wf_err *err)
{
    wf_outbox_row row;

    while (wf_outbox_next(&m->outbox, wf_journal_durable(m->journal), &row)) {
        wf_status rc = WF_OK;

        if (row.msg)
            rc = wf_net_send(m->net, row.to, WF_LANE_CONTROL, 0, &row.msg, err);
        else
            m->conf.ops.note(m->conf.ops.arg, row.job, row.json);
        free(row.json);
        if (rc != WF_OK && rc != WF_NOTFOUND) /* NOTFOUND: its EV_DOWN is on the way */
            return rc;
    }
    return WF_OK;
}

wf_status wf_master_say(wf_master *m, wf_member *to, uint16_t kind, const ProtobufCMessage *body,
                        wf_err *err)
{
    wf_msg *msg = NULL;
    wf_status rc;

    if (!to->peer)
        return WF_OK;
    WF_TRY(wf_net_msg(m->net, kind, &msg, err));
    rc = body ? wf_control_put(msg, body, err) : WF_OK;
    if (rc == WF_OK)
        rc = wf_master_send(m, to->peer, &msg, err);
    wf_net_free_msg(m->net, &msg);
    return rc;
}

static void keep_line(wf_job *j, const char *text)
{
    char *copy = strdup(text);

    if (!j->lines)
        j->lines = calloc(MOST_LINES, sizeof(*j->lines));
    if (!copy || !j->lines) {
        free(copy);
        return;
    }
    if (j->n_lines == MOST_LINES) {
        free(j->lines[0]);
        memmove(j->lines, j->lines + 1, (MOST_LINES - 1) * sizeof(*j->lines));
        j->n_lines--;
    }
    j->lines[j->n_lines++] = copy;
}

void wf_master_note(wf_master *m, wf_job *j, const char *kind, const char *fmt, ...)
{
    char text[1024], line[1200];
    char *json;
    json_t *o;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    WF_LOG_INFO(kind, "job=%s %s", j->name, text);
    snprintf(line, sizeof line, "%s %s", kind, text);
    keep_line(j, line);
    if (!m->conf.ops.note || m->replaying)
        return;
    o = json_pack("{s:s, s:s, s:i, s:I, s:s}", "event", kind, "job", j->name, "generation",
                  (int)j->generation, "step", (json_int_t)wf_training_global_step(m, j), "text",
                  text);
    json = o ? json_dumps(o, JSON_COMPACT) : NULL;
    if (json) /* one for which there is no memory is lost: the log has it */
        wf_outbox_add_note(&m->outbox, wf_journal_appended(m->journal), j->name, json);
    json_decref(o);
}

/* ---- the journal ---- */

/* What was known of the generation before is void; the ledger of this one follows, unless the
 * master ended before it was there: then the workers say what there is to train. */
static void begin_replayed_generation(wf_master *m, wf_job *j)
{
    wf_ledger_close(&j->ledger);
    j->base_step = j->lost_steps = j->next_cut = 0;
    j->cut = (wf_cut){0};
    j->evaluated = false;
    j->callbacks = (wf_callbacks_state){0};
    for (uint32_t i = 0; i < m->n_members; i++) {
        m->members[i].steps = 0;
        m->members[i].generation = 0;
    }
}

static wf_status replay_job(wf_master *m, const Weft__JobRecord *r, wf_err *err)
{
    wf_job *j = wf_job_find(m, r->name);

    if (!j)
        WF_TRY(wf_job_add(m, r->name, r->text, r->path, &j, err));
    if (r->text[0])
        WF_TRY(wf_job_rewrite(j, r->text, r->path, err));
    if (r->id)
        j->id = r->id;
    j->state = (wf_job_state)r->state;
    j->stop_asked = r->stop;
    if (j->generation != r->generation)
        begin_replayed_generation(m, j);
    j->generation = (uint16_t)r->generation;
    j->from_step = r->from_step;
    j->ending_from = r->ending_from;
    wf_rollback_replay(j, r);
    if (j->ledger.n) /* one that was set aside within the epoch */
        wf_rollback_apply(j);
    snprintf(j->reason, sizeof j->reason, "%s", r->reason);
    snprintf(j->mend, sizeof j->mend, "%s", r->mend);
    return WF_OK;
}

static void replay_finished(wf_master *m, const Weft__SplitDone *r)
{
    if (!m->job || !m->job->ledger.n)
        return;
    for (size_t i = 0; i < r->n_splits; i++)
        if (r->splits[i]->epoch == m->job->ledger.epoch)
            wf_ledger_finish(&m->job->ledger, r->splits[i]->id, 0);
    wf_members_replay_steps(m, r->incarnation, r->steps);
}

static void replay_cut(wf_master *m, const Weft__CutRecord *r)
{
    wf_job *j = m->job;

    if (!j)
        return;
    j->next_cut = r->next_cut;
    j->cut.number = r->number;
    for (size_t i = 0; i < r->n_workers; i++)
        wf_members_replay_steps(m, r->workers[i]->incarnation, r->workers[i]->steps);
    if (r->committed && r->asked)
        wf_callbacks_saved(&j->callbacks, r->step, j->ledger.epoch);
    if (r->committed) {
        j->from_step = -1;
        j->latest = r->step;
        j->n_checkpoints++;
    }
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
        j->state = WF_JOB_INTERRUPTED;
        snprintf(j->reason, sizeof j->reason, "every process had ended");
        snprintf(j->mend, sizeof j->mend, "go on with: weft recover %s", j->name);
    }
    for (uint32_t i = 0; i < m->n_members; i++) {
        m->members[i].live = m->members[i].unclaimed = false;
        m->members[i].incarnation = 0;
    }
    m->job = NULL;
    m->other_session = strcmp(session, m->session) != 0;
}

static wf_status replay(void *arg, const Weft__Record *r, wf_err *err)
{
    wf_master *m = arg;

    if (r->number || r->view) /* a view without a number: there was no job in hand */
        m->job = r->number && r->number <= m->n_jobs ? m->jobs[r->number - 1] : NULL;
    if (r->session[0])
        replay_session(m, r->session);
    if (r->view)
        wf_members_replay(m, r->view);
    if (r->job)
        WF_TRY(replay_job(m, r->job, err));
    if (r->epoch)
        WF_TRY(wf_training_replay(m, r->epoch, err));
    if (r->finished)
        replay_finished(m, r->finished);
    if (r->cut)
        replay_cut(m, r->cut);
    if (r->retired)
        wf_snapshot_replay_retired(m, r->retired);
    if (r->job_state && m->job)
        wf_snapshot_replay_job(m->job, r->job_state);
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
            wf_job_close_ledger(j);
        } else if (j->state == WF_JOB_RUNNING || j->state == WF_JOB_STOPPING) {
            j->stop_asked |= j->state == WF_JOB_STOPPING;
            j->state = WF_JOB_RESUMING;
        } else if (j->state == WF_JOB_SETTING_UP) {
            j->state = WF_JOB_RECOVERING;
        }
    }
}

static wf_status copy_conf(wf_master *m, const wf_master_conf *conf, wf_err *err)
{
    m->conf = *conf;
    m->session = strdup(conf->session);
    m->journal_dir = strdup(conf->journal_dir);
    m->checkpoint_dir = strdup(conf->checkpoint_dir);
    m->members = calloc(conf->n_tasks + 1, sizeof *m->members);
    if (!m->session || !m->journal_dir || !m->checkpoint_dir || !m->members)
        return wf_fail_nomem(err, conf->n_tasks * sizeof *m->members);
    m->n_members = conf->n_tasks;
    for (uint32_t i = 0; i < conf->n_tasks; i++) {
        m->members[i].task = conf->tasks[i].task;
        snprintf(m->members[i].address, sizeof m->members[i].address, "%s", conf->tasks[i].address);
        m->n_ps += conf->tasks[i].task.role == WF_ROLE_PS;
        m->n_workers += conf->tasks[i].task.role == WF_ROLE_WORKER;
    }
    WF_TRY(wf_members_index(m, err));
    return wf_todo_init(&m->wanting, m->n_members, err);
}

wf_status wf_master_new(const wf_master_conf *conf, int64_t now_ns, wf_master **out, wf_err *err)
{
    wf_master *m = calloc(1, sizeof *m);
    wf_status rc;

    if (!m)
        return wf_fail_nomem(err, sizeof *m);
    m->now_ns = now_ns;
    wf_watch_begin(&m->watch, now_ns);
    m->replaying = true;
    m->other_session = true;
    rc = copy_conf(m, conf, err);
    if (rc == WF_OK)
        rc = wf_journal_open(conf->disk, m->journal_dir, conf->journal_least, replay, m,
                             &m->journal, err);
    if (rc == WF_OK && m->other_session)
        rc = begin_session(m, err);
    if (rc == WF_OK) {
        take_up_jobs(m);
        if (m->job && (wf_job_over(m->job->state) || is_waiting_its_turn(m->job)))
            m->job = NULL;
        m->replaying = false;
    } else {
        wf_master_free(&m);
    }
    *out = m;
    return rc;
}

void wf_master_set_net(wf_master *m, wf_net *net)
{
    m->net = net;
}

void wf_master_free(wf_master **m)
{
    wf_master *it = *m;

    *m = NULL;
    if (!it)
        return;
    wf_outbox_close(&it->outbox);
    for (uint32_t i = 0; i < it->n_jobs; i++)
        wf_job_delete(&it->jobs[i]);
    free(it->jobs);
    free(it->members);
    wf_index_close(&it->by_task);
    wf_todo_close(&it->wanting);
    free(it->session);
    free(it->journal_dir);
    free(it->checkpoint_dir);
    wf_journal_close(&it->journal);
    free(it);
}

const char *wf_master_job_state(const wf_master *m, const char *job)
{
    const wf_job *j = wf_job_find(m, job);

    return j ? wf_job_state_name(j->state) : "";
}

uint32_t wf_master_view(const wf_master *m)
{
    return m->view;
}

bool wf_master_has(const wf_master *m, uint64_t incarnation)
{
    for (uint32_t i = 0; i < m->n_members; i++)
        if (m->members[i].live && m->members[i].incarnation == incarnation)
            return true;
    return false;
}

bool wf_master_durable(const wf_master *m)
{
    return wf_journal_durable(m->journal) == wf_journal_appended(m->journal);
}

/* ---- messages ---- */

static wf_status on_died(wf_master *m, const wf_peer *from, const wf_msg *msg, wf_err *err)
{
    Weft__Died *body = NULL;
    wf_status rc;

    WF_TRY(wf_control_get(msg, &weft__died__descriptor, &body, err));
    rc = wf_members_on_died(m, from, body, err);
    wf_control_free(&body);
    return rc;
}

static wf_status on_view_ok(const wf_msg *msg, wf_member *who)
{
    if (msg->head.view > who->view_acked)
        who->view_acked = msg->head.view;
    return WF_OK;
}

static wf_status on_member_message(wf_master *m, wf_member *who, const wf_msg *msg, wf_err *err)
{
    switch (msg->head.kind) {
    case WF_REGISTER:
        return wf_members_on_register(m, who, msg, err);
    case WF_VIEW_OK:
        return on_view_ok(msg, who);
    case WF_SETUP_OK:
    case WF_START_OK:
        return wf_job_on_ready(m, who, msg, err);
    case WF_TUNE_OK:
        return wf_training_on_tuned(m, who, msg, err);
    case WF_FAULT:
        return wf_job_on_fault(m, who, msg, err);
    case WF_CUT_DUE:
    case WF_CUT_REPORT:
    case WF_CUT_FORKED:
    case WF_CUT_COMMIT:
    case WF_CUT_DONE:
        return wf_cuts_on_message(m, who, msg, err);
    default:
        return wf_training_on_message(m, who, msg, err);
    }
}

static wf_status on_message(wf_master *m, wf_event *ev, wf_err *err)
{
    wf_member *who = wf_member_at(m, ev->peer);
    wf_status rc;

    if (ev->msg->head.kind == WF_ASK)
        rc = wf_asks_on_message(m, ev->peer, ev->msg, err);
    else if (ev->msg->head.kind == WF_DIED)
        rc = on_died(m, ev->peer, ev->msg, err);
    else
        rc = who ? on_member_message(m, who, ev->msg, err) : WF_OK;
    if (rc != WF_PROTO)
        return rc;
    WF_LOG_WARN("master.bad_message", "kind=%s why=\"%s\"", wf_kind_name(ev->msg->head.kind),
                err->what);
    return WF_OK;
}

static wf_status on_beat(wf_master *m, const wf_event *ev, wf_err *err)
{
    wf_member *who = wf_member_at(m, ev->peer);
    wf_status rc = who ? wf_progress_on_beat(m, who, ev->msg, err) : WF_OK;

    return rc == WF_PROTO ? WF_OK : rc;
}

/* What workers say all the time changes nothing of the facts about members. */
static bool is_of_splits(const wf_event *ev)
{
    uint16_t kind = ev->kind == WF_EV_MESSAGE ? ev->msg->head.kind : 0;

    return kind == WF_SPLIT_WANT || kind == WF_SPLIT_DONE || kind == WF_PROGRESS ||
           ev->kind == WF_EV_BEAT;
}

wf_status wf_master_on_event(wf_master *m, wf_event *ev, int64_t now_ns, wf_err *err)
{
    wf_status rc = WF_OK;

    m->now_ns = now_ns;
    m->facts.known &= is_of_splits(ev);
    switch (ev->kind) {
    case WF_EV_UP:
        rc = wf_members_on_up(m, ev->peer, err);
        break;
    case WF_EV_DOWN:
        wf_members_on_down(m, ev->peer);
        break;
    case WF_EV_MESSAGE:
        m->watch.events++;
        rc = on_message(m, ev, err);
        wf_net_free_msg(m->net, &ev->msg);
        break;
    case WF_EV_REFUSED: /* it dials nobody */
        break;
    case WF_EV_BEAT:
        rc = on_beat(m, ev, err);
        wf_net_free_msg(m->net, &ev->msg);
        break;
    }
    return rc;
}

wf_status wf_master_advance(wf_master *m, int64_t now_ns, wf_err *err)
{
    m->now_ns = now_ns;
    WF_TRY(wf_members_watch(m, err));
    WF_TRY(wf_job_advance(m, err));
    WF_TRY(wf_members_view(m, err));
    return wf_work_sync(m, err);
}
