/* SPDX-License-Identifier: Apache-2.0 */
/* master/members.c - who lives: hellos, signs of life, the supervisor's word; and the view made of
 * it. */
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "master/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

wf_member *wf_member_of(wf_master *m, wf_task task)
{
    for (uint32_t i = 0; i < m->n_members; i++)
        if (wf_task_same(m->members[i].task, task))
            return &m->members[i];
    return NULL;
}

wf_member *wf_member_at(wf_master *m, const wf_peer *peer)
{
    wf_member *who = wf_member_of(m, peer->task);

    return who && who->peer == peer ? who : NULL;
}

static bool is_retired(const wf_master *m, uint64_t incarnation)
{
    for (uint32_t i = 0; i < WF_MIN(m->n_retired, (uint32_t)WF_MASTER_RETIRED); i++)
        if (m->retired[i] == incarnation)
            return true;
    return false;
}

wf_status wf_master_admit(void *arg, const wf_hello *hello, wf_err *err)
{
    wf_master *m = arg;
    char text[32];

    if (hello->task.role == WF_ROLE_CLIENT)
        return WF_OK;
    if (!wf_member_of(m, hello->task))
        return wf_fail(err, WF_MISMATCH, "use the same cluster.yaml for all tasks",
                       "%s is not in the master's cluster.yaml",
                       wf_task_str(hello->task, text, sizeof text));
    return WF_OK;
}

static void retire(wf_master *m, uint64_t incarnation)
{
    if (incarnation && !is_retired(m, incarnation))
        m->retired[m->n_retired++ % WF_MASTER_RETIRED] = incarnation;
}

static wf_status dismiss(wf_master *m, wf_peer *peer, uint32_t how, wf_err *err)
{
    wf_msg *msg = NULL;

    WF_TRY(wf_net_msg(m->net, WF_DISMISS, &msg, err));
    msg->head.request = how;
    return wf_master_send(m, peer, &msg, err);
}

/* A life of a task is over for good (M2). `ended`: its process is known to be gone; a silent one
 * may only be cut off. */
static wf_status end_life(wf_master *m, wf_member *who, bool ended, const char *reason, wf_err *err)
{
    char text[32];

    if (!who->incarnation)
        return WF_OK;
    WF_LOG_WARN("member.lost", "task=%s reason=\"%s\"", wf_task_str(who->task, text, sizeof text),
                reason);
    retire(m, who->incarnation);
    if (who->live) {
        m->view_stale = true;
        if (m->job)
            wf_master_note(m, m->job, "task.lost", "%s: %s", text, reason);
        WF_TRY(wf_job_lost(m, who, ended ? reason : NULL, err));
    }
    snprintf(who->reason, sizeof who->reason, "%s", reason);
    who->live = who->registered = who->ready = who->wants = who->reported = false;
    who->unclaimed = false;
    who->incarnation = 0;
    who->peer = NULL;
    who->generation = 0;
    who->steps = 0;
    who->samples_per_sec = 0;
    who->view_acked = 0;
    who->since_ns = m->now_ns;
    return WF_OK;
}

wf_status wf_members_on_up(wf_master *m, wf_peer *peer, wf_err *err)
{
    wf_member *who = wf_member_of(m, peer->task);

    if (!who) /* a client */
        return WF_OK;
    if (is_retired(m, peer->incarnation))
        return dismiss(m, peer, who->incarnation ? WF_DISMISS_SUPERSEDED : WF_DISMISS_RESTART, err);
    if (who->incarnation && who->incarnation != peer->incarnation) {
        if (who->peer)
            WF_TRY(dismiss(m, who->peer, WF_DISMISS_SUPERSEDED, err));
        WF_TRY(end_life(m, who, true, "a newer process took its place", err));
    }
    who->peer = peer;
    /* Nothing is said to it before it has said what it holds: a split that leaves before its
     * register comes in would count as not held, and be dealt twice. */
    who->registered = false;
    who->tune_sent = false;
    who->incarnation = peer->incarnation;
    who->pid = peer->pid;
    who->last_heard_ns = m->now_ns;
    return WF_OK;
}

void wf_members_on_down(wf_master *m, const wf_peer *peer)
{
    wf_member *who = wf_member_at(m, peer);

    if (who) { /* it may say hello again; silence decides */
        who->peer = NULL;
        who->registered = false;
    }
}

wf_status wf_members_on_register(wf_master *m, wf_member *who, const wf_msg *msg, wf_err *err)
{
    Weft__Register *body = NULL;
    wf_job *j = m->job;
    bool held;
    wf_status rc = WF_OK;

    WF_TRY(wf_control_get(msg, &weft__register__descriptor, &body, err));
    rc = wf_training_check_held(who, body->n_open, body->n_finished, err);
    if (rc != WF_OK) {
        wf_control_free(&body);
        return rc;
    }
    if (!who->live) {
        who->live = true;
        who->since_ns = m->now_ns;
        m->view_stale = true;
    }
    who->registered = true;
    who->unclaimed = false;
    held = j && body->ready && strcmp(body->job, j->name) == 0 && body->generation == j->generation;
    if (!held && who->task.role == WF_ROLE_WORKER) {
        rc = wf_job_lost(m, who, NULL, err); /* what it held goes back */
        who->steps = 0;
    }
    who->ready = held;
    who->generation = held ? j->generation : 0;
    who->view_acked = 0;
    who->wants = false;
    if (rc == WF_OK && body->ready && !held && (!j || strcmp(body->job, j->name) != 0))
        rc = wf_master_say(m, who, WF_HALT, NULL, err); /* the job is over: it missed that */
    if (rc == WF_OK && who->task.role == WF_ROLE_WORKER)
        rc = wf_training_claim(m, who, body, err);
    wf_control_free(&body);
    if (rc == WF_OK && who->task.role == WF_ROLE_PS)
        m->view_stale = true; /* it is told the view again */
    return rc;
}

/* The supervisor saw the process end. */
wf_status wf_members_on_died(wf_master *m, const Weft__Died *died, wf_err *err)
{
    wf_member *who = wf_member_of(m, (wf_task){(wf_role)died->role, died->index});

    if (!who || who->pid != died->pid || !who->incarnation)
        return WF_OK;
    return end_life(m, who, true, died->reason, err);
}

/* Silence: the link's pings, or the beat of a task that computes. */
wf_status wf_members_give_up(wf_master *m, wf_member *who, const char *reason, wf_err *err)
{
    if (who->peer)
        WF_TRY(dismiss(m, who->peer, WF_DISMISS_RESTART, err));
    return end_life(m, who, false, reason, err);
}

wf_status wf_members_watch(wf_master *m, wf_err *err)
{
    for (uint32_t i = 0; i < m->n_members; i++) {
        wf_member *who = &m->members[i];
        char reason[64];

        if (!who->incarnation)
            continue;
        if (who->peer && who->peer->last_heard_ns > who->last_heard_ns)
            who->last_heard_ns = who->peer->last_heard_ns;
        if (m->now_ns - who->last_heard_ns < m->conf.dead_ns)
            continue;
        snprintf(reason, sizeof reason, "nothing heard for %.1f s",
                 (double)(m->now_ns - who->last_heard_ns) / 1e9);
        WF_TRY(wf_members_give_up(m, who, reason, err));
    }
    return WF_OK;
}

wf_status wf_view_make(const wf_master *m, Weft__View *out, wf_err *err)
{
    Weft__Member *rows = calloc(m->n_members + 1, sizeof *rows);
    Weft__Member **list = calloc(m->n_members + 1, sizeof(*list));

    weft__view__init(out);
    out->number = m->view;
    out->members = list;
    if (!rows || !list) {
        free(rows);
        free(list);
        out->members = NULL;
        return wf_fail_nomem(err, m->n_members * sizeof *rows);
    }
    list[0] = rows; /* so that freeing finds the rows, also of an empty view */
    for (uint32_t i = 0; i < m->n_members; i++) {
        const wf_member *who = &m->members[i];
        Weft__Member *row = &rows[out->n_members];

        if (!who->live)
            continue;
        weft__member__init(row);
        row->role = who->task.role;
        row->index = who->task.index;
        row->incarnation = who->incarnation;
        row->address = (char *)who->address;
        row->pid = who->pid;
        row->steps = m->job && who->generation == m->job->generation ? who->steps : 0;
        list[out->n_members++] = row;
    }
    return WF_OK;
}

void wf_view_free(Weft__View *v)
{
    if (v->members)
        free(v->members[0]);
    free(v->members);
    v->members = NULL;
    v->n_members = 0;
}

/* M1: who the members are is on disk before anyone hears it, so that a master that starts again
 * does not take those for dead that only have not found it yet. */
static wf_status journal_view(wf_master *m, Weft__View *view, wf_err *err)
{
    Weft__Record record = WEFT__RECORD__INIT;

    view->number = m->view + 1;
    view->lost_steps = m->job ? m->job->lost_steps : 0;
    record.view = view;
    record.number = m->job ? m->job->number : 0;
    return wf_journal_append(m->journal, &record, err);
}

wf_status wf_members_view(wf_master *m, wf_err *err)
{
    Weft__View view;
    wf_status rc;

    if (!m->view_stale)
        return WF_OK;
    WF_TRY(wf_view_make(m, &view, err));
    rc = journal_view(m, &view, err);
    if (rc == WF_OK) {
        m->view++;
        m->view_stale = false;
    }
    for (uint32_t i = 0; rc == WF_OK && i < m->n_members; i++)
        if (m->members[i].live && m->members[i].task.role == WF_ROLE_PS)
            rc = wf_master_say(m, &m->members[i], WF_VIEW, &view.base, err);
    WF_LOG_INFO("view.new", "view=%u members=%zu", m->view, view.n_members);
    wf_view_free(&view);
    return rc;
}

static bool view_holds(const Weft__View *view, uint64_t incarnation)
{
    for (size_t i = 0; i < view->n_members; i++)
        if (view->members[i]->incarnation == incarnation)
            return true;
    return false;
}

void wf_members_replay(wf_master *m, const Weft__View *view)
{
    m->view = view->number;
    for (uint32_t i = 0; i < m->n_members;
         i++) /* M2: who was in the view before and is not in this */
        if (m->members[i].live && !view_holds(view, m->members[i].incarnation))
            retire(m, m->members[i].incarnation);
    for (uint32_t i = 0; i < m->n_members; i++) {
        m->members[i].live = m->members[i].unclaimed = false;
        m->members[i].incarnation = 0;
        m->members[i].steps = 0;
        m->members[i].generation = 0;
    }
    for (size_t i = 0; i < view->n_members; i++) {
        const Weft__Member *from = view->members[i];
        wf_member *who = wf_member_of(m, (wf_task){(wf_role)from->role, from->index});

        if (!who)
            continue;
        who->live = who->unclaimed = true;
        who->incarnation = from->incarnation;
        who->pid = from->pid;
        who->last_heard_ns = who->since_ns = m->now_ns;
        wf_members_replay_steps(m, from->incarnation, from->steps);
    }
    if (m->job)
        m->job->lost_steps = view->lost_steps;
}

void wf_members_replay_steps(wf_master *m, uint64_t incarnation, uint64_t steps)
{
    for (uint32_t i = 0; m->job && steps && i < m->n_members; i++) {
        wf_member *who = &m->members[i];

        if (!who->live || who->incarnation != incarnation)
            continue;
        who->steps = WF_MAX(who->steps, steps);
        who->generation = m->job->generation;
    }
}

bool wf_members_worker_away(const wf_master *m)
{
    for (uint32_t i = 0; i < m->n_members; i++)
        if (m->members[i].task.role == WF_ROLE_WORKER && m->members[i].live &&
            (!m->members[i].registered || !m->members[i].peer))
            return true;
    return false;
}

bool wf_members_ps_live(const wf_master *m, bool with_view)
{
    for (uint32_t i = 0; i < m->n_members; i++) {
        const wf_member *who = &m->members[i];

        if (who->task.role == WF_ROLE_PS &&
            (!who->registered || !who->peer || (with_view && who->view_acked != m->view)))
            return false;
    }
    return true;
}

const char *wf_members_missing(const wf_master *m, char *text, size_t size)
{
    size_t at = 0;

    text[0] = 0;
    for (uint32_t i = 0; i < m->n_members && at < size; i++) {
        char name[32];

        if (m->members[i].live)
            continue;
        at += (size_t)snprintf(text + at, size - at, "%s%s at %s", at ? ", " : "",
                               wf_task_str(m->members[i].task, name, sizeof name),
                               m->members[i].address);
    }
    return text;
}

/* The live worker of the lowest number that has started: the same one as long as it lives, so the
 * lease is its membership (M3). */
wf_member *wf_members_chief(wf_master *m)
{
    for (uint32_t i = 0; i < m->n_members; i++) {
        wf_member *who = &m->members[i];

        if (m->job && wf_member_trains(who, m->job))
            return who;
    }
    return NULL;
}
