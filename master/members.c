/* SPDX-License-Identifier: Apache-2.0 */
/* master/members.c - who lives: hellos, signs of life, the supervisor's word; and the view made of
 * it. */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "master/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a role and a number, which fit into one. */
static uint64_t key_of(wf_task task)
{
    return (uint64_t)task.role << 32 | task.index;
}

wf_status wf_members_index(wf_master *m, wf_err *err)
{
    for (uint32_t i = 0; i < m->n_members; i++)
        WF_TRY(wf_index_put(&m->by_task, key_of(m->members[i].task), &m->members[i], err));
    return WF_OK;
}

wf_member *wf_member_of(wf_master *m, wf_task task)
{
    return wf_index_get(&m->by_task, key_of(task));
}

wf_member *wf_member_at(wf_master *m, const wf_peer *peer)
{
    wf_member *who = wf_member_of(m, peer->task);

    return who && who->peer == peer ? who : NULL;
}

bool wf_members_is_retired(const wf_master *m, uint64_t incarnation)
{
    for (uint32_t i = 0; i < WF_MIN(m->n_retired, (uint32_t)WF_MASTER_RETIRED); i++)
        if (m->retired[i] == incarnation)
            return true;
    return false;
}

void wf_members_retire(wf_master *m, uint64_t incarnation)
{
    if (incarnation && !wf_members_is_retired(m, incarnation))
        m->retired[m->n_retired++ % WF_MASTER_RETIRED] = incarnation;
}

static wf_status dismiss(wf_master *m, wf_peer *peer, uint32_t how, wf_err *err)
{
    wf_msg *msg = NULL;

    WF_TRY(wf_net_msg(m->net, WF_DISMISS, &msg, err));
    msg->head.request = how;
    return wf_master_send(m, peer, &msg, err);
}

static void keep_reason(const wf_master *m, wf_member *who, const char *reason)
{
    snprintf(who->reason, sizeof who->reason, "%s", reason);
    who->reason_ns = m->now_ns;
}

/* A life of a task is over for good (M2). `ended`: its process is known to be gone; a silent one
 * may only be cut off. */
static wf_status end_life(wf_master *m, wf_member *who, bool ended, const char *reason, wf_err *err)
{
    char text[32];

    if (!who->incarnation)
        return WF_OK;
    m->facts.known = false;
    WF_LOG_WARN("member.lost", "task=%s reason=\"%s\"", wf_task_str(who->task, text, sizeof text),
                reason);
    wf_members_retire(m, who->incarnation);
    if (who->live) {
        m->view_stale = true;
        if (m->job)
            wf_master_note(m, m->job, "task.lost", "%s: %s", text, reason);
        WF_TRY(wf_job_lost(m, who, ended ? reason : NULL, err));
    }
    keep_reason(m, who, reason);
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
    if (wf_members_is_retired(m, peer->incarnation))
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
    who->down = false;
    who->challenged_ns = 0;
    who->eval_failed = 0;
    wf_watch_received(m, who, m->now_ns);
    wf_progress_begin(&who->progress, m->now_ns);
    return WF_OK;
}

void wf_members_on_down(wf_master *m, const wf_peer *peer)
{
    wf_member *who = wf_member_at(m, peer);

    wf_outbox_purge(&m->outbox, m->net, peer);
    if (who) { /* it may say hello again; silence decides */
        if (peer->last_heard_ns > who->last_heard_ns)
            wf_watch_received(m, who, peer->last_heard_ns);
        m->facts.known = false;
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
    if (!who->live && body->view > 0) { /* M2, however long ago */
        wf_control_free(&body);
        return wf_members_give_up(m, who, "it was given up before", err);
    }
    if (!who->live) {
        who->live = true;
        who->since_ns = m->now_ns;
        m->view_stale = true;
    }
    who->registered = true;
    who->unclaimed = false;
    snprintf(who->session, sizeof who->session, "%s", body->session);
    held = j && body->ready && strcmp(body->job, j->name) == 0 && body->job_id == j->id &&
           body->generation == j->generation;
    if (!held && who->task.role == WF_ROLE_WORKER) {
        rc = wf_job_lost(m, who, NULL, err); /* what it held goes back */
        who->steps = 0;
    }
    who->ready = held;
    who->generation = held ? j->generation : 0;
    who->view_acked = 0;
    who->wants = false;
    if (rc == WF_OK && body->ready && !held && (!j || body->job_id != j->id))
        rc = wf_master_say(m, who, WF_HALT, NULL, err); /* the job is over: it missed that */
    if (rc == WF_OK && who->task.role == WF_ROLE_WORKER)
        rc = wf_training_claim(m, who, body, err);
    wf_control_free(&body);
    if (rc == WF_OK && who->task.role == WF_ROLE_PS)
        m->view_stale = true; /* it is told the view again */
    return rc;
}

/* Whether a report comes from the supervisor that started this very task, or from the master's own:
 * nobody else knows their sessions. */
static bool is_supervisors(const wf_master *m, const wf_member *who, const Weft__Died *died)
{
    return died->session[0] &&
           (strcmp(died->session, m->session) == 0 || strcmp(died->session, who->session) == 0);
}

static void refuse_death(wf_master *m, const wf_member *who, const wf_peer *from)
{
    char text[32];

    if (m->refused_deaths++ && m->now_ns - m->refused_log_ns < WF_NS_PER_S)
        return;
    m->refused_log_ns = m->now_ns;
    WF_LOG_WARN("member.death_refused", "task=%s from_pid=%lu refused=%lu",
                wf_task_str(who->task, text, sizeof text), (unsigned long)from->pid,
                (unsigned long)m->refused_deaths);
}

/* The supervisor saw the process end, or could not start one (pid 0). */
wf_status wf_members_on_died(wf_master *m, const wf_peer *from, const Weft__Died *died, wf_err *err)
{
    wf_member *who = wf_member_of(m, (wf_task){(wf_role)died->role, died->index});

    if (!who)
        return WF_OK;
    if (!is_supervisors(m, who, died)) {
        refuse_death(m, who, from);
        return WF_OK;
    }
    if (who->incarnation && who->pid != died->pid)
        return WF_OK; /* of a process before this one */
    if (who->incarnation)
        WF_TRY(end_life(m, who, true, died->reason, err));
    if (died->down && !who->down) {
        WF_LOG_ERROR("member.down", "task=%s/%u reason=\"%s\"", wf_role_name(who->task.role),
                     who->task.index, died->reason);
        keep_reason(m, who, died->reason);
        who->down = true;
        who->since_ns = m->now_ns;
    }
    return WF_OK;
}

/* Silence: the link's pings, or the beat of a task that computes. */
wf_status wf_members_give_up(wf_master *m, wf_member *who, const char *reason, wf_err *err)
{
    if (who->peer)
        WF_TRY(dismiss(m, who->peer, WF_DISMISS_RESTART, err));
    return end_life(m, who, false, reason, err);
}

/* M2: who was in the view before and is not in this one is never a member again. */
static void retire_who_left(wf_master *m, const Weft__View *view)
{
    for (uint32_t i = 0; i < m->n_members; i++)
        m->members[i].stays = false;
    for (size_t i = 0; i < view->n_members; i++) {
        const Weft__Member *from = view->members[i];
        wf_member *who = wf_member_of(m, (wf_task){(wf_role)from->role, from->index});

        if (who && who->incarnation == from->incarnation)
            who->stays = true;
    }
    for (uint32_t i = 0; i < m->n_members; i++)
        if (m->members[i].live && !m->members[i].stays)
            wf_members_retire(m, m->members[i].incarnation);
}

void wf_members_replay(wf_master *m, const Weft__View *view)
{
    m->view = view->number;
    retire_who_left(m, view);
    for (uint32_t i = 0; i < m->n_members; i++) {
        m->members[i].live = m->members[i].unclaimed = false;
        m->members[i].incarnation = m->members[i].viewed = 0;
        m->members[i].steps = 0;
        m->members[i].generation = 0;
    }
    for (size_t i = 0; i < view->n_members; i++) {
        const Weft__Member *from = view->members[i];
        wf_member *who = wf_member_of(m, (wf_task){(wf_role)from->role, from->index});

        if (!who)
            continue;
        who->live = who->unclaimed = true;
        who->incarnation = who->viewed = from->incarnation;
        who->pid = from->pid;
        who->since_ns = m->now_ns;
        wf_watch_received(m, who, m->now_ns);
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
