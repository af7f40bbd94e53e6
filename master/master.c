/* SPDX-License-Identifier: Apache-2.0 */
/* master/master.c - a master begins and ends, and events are given to their handlers. */
#include "master/master.h"
#include "common/base/clock.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "master/top.h"
#include "master/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static wf_status copy_conf(wf_master *m, const wf_master_conf *conf, wf_err *err)
{
    m->conf = *conf;
    m->session = strdup(conf->session);
    m->journal_dir = strdup(conf->journal_dir);
    m->checkpoint_dir = strdup(conf->checkpoint_dir);
    m->members = calloc(conf->n_tasks + 1, sizeof *m->members);
    m->facts = calloc(1, sizeof *m->facts);
    if (!m->session || !m->journal_dir || !m->checkpoint_dir || !m->members || !m->facts)
        return wf_fail_nomem(err, conf->n_tasks * sizeof *m->members);
    m->n_members = conf->n_tasks;
    for (uint32_t i = 0; i < conf->n_tasks; i++) {
        m->members[i].task = conf->tasks[i].task;
        snprintf(m->members[i].address, sizeof m->members[i].address, "%s", conf->tasks[i].address);
        m->n_ps += conf->tasks[i].task.role == WF_ROLE_PS;
        m->n_workers += conf->tasks[i].task.role == WF_ROLE_WORKER;
    }
    WF_TRY(wf_members_index(m, err));
    WF_TRY(wf_placement_new(m->n_ps, &m->placement, err));
    return wf_todo_init(&m->wanting, m->n_members, err);
}

wf_status wf_master_new(const wf_master_conf *conf, int64_t now_ns, wf_master **out, wf_err *err)
{
    wf_master *m = calloc(1, sizeof *m);
    wf_status rc;

    if (!m)
        return wf_fail_nomem(err, sizeof *m);
    m->began_ns = m->now_ns = now_ns;
    wf_watch_begin(&m->watch, now_ns);
    m->replaying = true;
    m->other_session = true;
    rc = copy_conf(m, conf, err);
    if (rc == WF_OK)
        rc = wf_journal_open(conf->disk, m->journal_dir, conf->journal_least, wf_master_replay, m,
                             &m->journal, err);
    if (rc == WF_OK)
        rc = wf_master_take_up(m, err);
    if (rc != WF_OK)
        wf_master_free(&m);
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
    while (it->finished) {
        wf_work *w = it->finished;

        it->finished = w->next;
        wf_work_free(&w);
    }
    wf_master_free_jobs(it);
    free(it->members);
    free(it->facts);
    wf_index_close(&it->by_task);
    wf_todo_close(&it->wanting);
    wf_placement_free(&it->placement);
    free(it->session);
    free(it->journal_dir);
    free(it->checkpoint_dir);
    wf_journal_close(&it->journal);
    free(it);
}

int64_t wf_master_newest_run(const wf_master *m, const char *job)
{
    const wf_job *j = wf_job_find(m, job);
    char its[WF_RUN_NAME];

    return j ? (int64_t)wf_run_split(j->name, its) : -1;
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
    const wf_member *who = wf_member_find(m, incarnation);

    return who && wf_member_is_live(who);
}

bool wf_master_durable(const wf_master *m)
{
    return wf_journal_durable(m->journal) == wf_journal_appended(m->journal);
}

/* ---- messages ---- */

static wf_status on_view_ok(const wf_msg *msg, wf_member *who)
{
    if (msg->head.view > who->view_acked)
        who->view_acked = msg->head.view;
    return WF_OK;
}

/* What is about the job in hand, and the generation of it that the sender has. */
static wf_status on_job_message(wf_master *m, wf_job *j, wf_member *who, const wf_msg *msg,
                                wf_err *err)
{
    switch (msg->head.kind) {
    case WF_SETUP_OK:
    case WF_START_OK:
        return wf_faults_on_ready(m, j, who, msg, err);
    case WF_ROUND_OK:
        return wf_faults_on_round(m, j, who, msg, err);
    case WF_TUNE_OK: /* else a set-up has given it another rate since */
        return wf_epoch_on_tuned(who, msg, err);
    case WF_MOVED:
        return wf_placement_on_moved(m, j, who, msg, err);
    case WF_LOAD:
        return wf_placement_on_load(m, who, msg, err);
    case WF_FAULT:
        return wf_faults_on_fault(m, j, who, msg, err);
    case WF_CUT_DUE:
    case WF_CUT_REPORT:
    case WF_CUT_FORKED:
    case WF_CUT_COMMIT:
    case WF_CUT_DONE:
        return wf_saving_on_message(m, j, who, msg, err);
    default:
        return wf_epoch_on_message(m, j, who, msg, err);
    }
}

static wf_status on_member_message(wf_master *m, wf_member *who, const wf_msg *msg, wf_err *err)
{
    wf_job *j = wf_job_of(m, who, msg);

    if (msg->head.kind == WF_REGISTER)
        return wf_arrivals_on_register(m, who, msg, err);
    if (msg->head.kind == WF_VIEW_OK)
        return on_view_ok(msg, who);
    return j ? on_job_message(m, j, who, msg, err) : WF_OK;
}

static wf_status on_message(wf_master *m, wf_event *ev, wf_err *err)
{
    wf_member *who = wf_member_at(m, ev->peer);
    wf_status rc;

    if (ev->msg->head.kind == WF_ASK)
        rc = wf_asks_on_message(m, ev->peer, ev->msg, err);
    else if (ev->msg->head.kind == WF_TASKS_ASK)
        rc = wf_asks_on_tasks(m, ev->peer, ev->msg, err);
    else if (ev->msg->head.kind == WF_DIED)
        rc = wf_arrivals_on_died(m, ev->peer, ev->msg, err);
    else if (ev->msg->head.kind == WF_PROCESSES)
        rc = wf_hung_on_processes(m, ev->peer, ev->msg, err);
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
    wf_status rc = who ? wf_member_on_beat(m, who, ev->msg, err) : WF_OK;

    return rc == WF_PROTO ? WF_OK : rc;
}

/* What workers, ps and supervisors say all the time changes nothing of the facts about members. */
static bool is_of_splits(const wf_event *ev)
{
    uint16_t kind = ev->kind == WF_EV_MESSAGE ? ev->msg->head.kind : 0;

    return kind == WF_SPLIT_WANT || kind == WF_SPLIT_DONE || kind == WF_PROGRESS ||
           kind == WF_LOAD || kind == WF_PROCESSES || ev->kind == WF_EV_BEAT;
}

wf_status wf_master_on_event(wf_master *m, wf_event *ev, int64_t now_ns, wf_err *err)
{
    wf_status rc = WF_OK;

    m->now_ns = now_ns;
    m->facts_known &= is_of_splits(ev);
    switch (ev->kind) {
    case WF_EV_UP:
        rc = wf_arrivals_on_up(m, ev->peer, err);
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
