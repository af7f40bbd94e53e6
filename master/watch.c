/* SPDX-License-Identifier: Apache-2.0 */
/* master/watch.c - gives up members that have been silent, or without progress, for too long.
 *
 * Silence counts only while the master could receive. After an absence of its own (the process was
 * stopped, or held up in a call) every member has the full time again from the master's return:
 * messages of that time may take many iterations to read, and peers that missed the master dial
 * again. Absences that repeat must not protect a dead member for ever, so a member that sent
 * nothing during four times the limit of the master's own presence is given up in any case.
 *
 * A worker that waits for a ps which serves others is given up as well: whatever holds it, a new
 * process with new links may be free of it, and its records go to others meanwhile.
 */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "master/top.h"

#include <stdio.h>
#include <string.h>

enum {
    LOOKS = 20,       /* in the time after which a silent member is given up */
    PATIENCE = 4,     /* so many times that time of the master's presence end it in any case */
    MANY_EVENTS = 256 /* in one iteration: others may still be unread */
};
/* What is waited for from a task for so many times the time after which silence ends it is asked
 * for again, over a fresh link. */
enum { ASK_AGAIN = 6 };
static const int64_t ABSENCE_NS = WF_NS_PER_S;

void wf_watch_begin(wf_watch *w, int64_t now_ns)
{
    *w = (wf_watch){.iteration_ns = now_ns, .receiving_since_ns = now_ns, .looked_ns = now_ns};
}

/* Adds to the master's presence, or notes that it was absent. */
static void notice_absence(wf_master *m)
{
    wf_watch *w = &m->watch;
    int64_t longest_ns = WF_MIN(ABSENCE_NS, m->conf.dead_ns / 4);
    int64_t away_ns = m->now_ns - w->iteration_ns;

    w->iteration_ns = m->now_ns;
    w->present_ns += WF_MIN(away_ns, longest_ns);
    if (away_ns < longest_ns)
        return;
    w->receiving_since_ns = m->now_ns;
    WF_LOG_WARN("master.was_away", "for %.1f s; silence of members counts from now",
                (double)away_ns / 1e9);
}

/* True when members should be looked at: not while their messages may be unread, unless that has
 * lasted for as long as a member may be silent. */
static bool is_due(wf_master *m)
{
    wf_watch *w = &m->watch;
    uint32_t events = w->events;
    int64_t since_ns = m->now_ns - w->looked_ns;

    w->events = 0;
    if (since_ns < m->conf.dead_ns / LOOKS || (events >= MANY_EVENTS && since_ns < m->conf.dead_ns))
        return false;
    w->looked_ns = m->now_ns;
    return true;
}

/* Whether a worker waits for a ps that serves: it is not the ps's doing, or not known to be. Where
 * staleness is bounded, the ps may say that both wait for a slower worker. */
static bool waits_in_vain(const wf_master *m, const wf_member *who, int64_t since_ns)
{
    const wf_waiting *w = &who->progress.waits;
    const wf_job *j = m->job;
    const wf_member *ps;

    if (!j || j->state != WF_JOB_RUNNING || !wf_member_trains(who, j->generation) ||
        w->whom.role != WF_ROLE_PS || m->now_ns - WF_MAX(w->since_ns, since_ns) < m->conf.stuck_ns)
        return false;
    ps = wf_member_of(m, w->whom);
    return ps && wf_member_is_registered(ps) && ps->part == WF_PART_READY &&
           m->now_ns - WF_MAX(ps->since_ns, ps->progress.held_ns) >= m->conf.stuck_ns;
}

static bool is_stuck(const wf_master *m, const wf_member *who, int64_t since_ns, char *reason,
                     size_t size)
{
    const wf_progress *p = &who->progress;
    int64_t still_ns = m->now_ns - WF_MAX(p->changed_ns, since_ns);
    char whom[32];

    if (!p->beat_ns)
        return false;
    if (still_ns >= m->conf.stuck_ns) {
        snprintf(reason, size, "its main thread has stood still for %.1f s",
                 (double)still_ns / 1e9);
        return true;
    }
    if (!waits_in_vain(m, who, since_ns))
        return false;
    snprintf(reason, size, "it has waited for %s for %.1f s: %.100s",
             wf_task_str(p->waits.whom, whom, sizeof whom),
             (double)(m->now_ns - p->waits.since_ns) / 1e9, p->waits.what);
    return true;
}

/* ---- what the master waits for ---- */

static void ps_owes(const wf_master *m, const wf_member *who, char *what, size_t size)
{
    const wf_job *j = m->job;

    if (who->view_acked != m->view)
        snprintf(what, size, "view %u", m->view);
    else if (j && who->part == WF_PART_ASKED && who->generation == j->generation)
        snprintf(what, size, "its set-up for generation %u of job %s", j->generation, j->name);
    else if (who->tune_sent)
        snprintf(what, size, "the learning rate %g", j ? j->epoch->callbacks.rate : 0);
}

static void worker_owes(const wf_master *m, const wf_member *who, char *what, size_t size)
{
    const wf_job *j = m->job;

    if (!j || who->part == WF_PART_NONE || who->generation != j->generation)
        return;
    if (who->part != WF_PART_READY)
        snprintf(what, size, "its start in generation %u of job %s", j->generation, j->name);
    else if (wf_cut_waits_for(j, who))
        snprintf(what, size, "the end of its step, for checkpoint cut %u", j->cut->number);
    else if (j->cut->state != WF_CUT_NONE && j->cut->chief == who->incarnation)
        snprintf(what, size, "checkpoint cut %u", j->cut->number);
    else if (who->tune_sent)
        snprintf(what, size, "the learning rate %g", j->epoch->callbacks.rate);
    else if (wf_evaluation_asks(j, who))
        snprintf(what, size, "its part of the evaluation of epoch %u", j->epoch->ledger.epoch + 1);
}

/* A fresh link makes both sides say all that matters again. Not for what takes long by itself: it
 * would be begun anew. */
static void ask_again(wf_master *m, wf_member *who)
{
    wf_progress *p = &who->progress;
    bool begun = who->part == WF_PART_READY && who->task.role == WF_ROLE_WORKER;
    wf_peer *peer;

    if (begun || !who->peer ||
        m->now_ns - WF_MAX(p->owes.since_ns, p->asked_ns) < ASK_AGAIN * m->conf.dead_ns)
        return;
    p->asked_ns = m->now_ns;
    peer = who->peer;
    wf_members_on_down(m, peer);
    wf_net_drop(m->net, &peer);
}

/* Logs it when it is long, and asks again. */
static void look_what_it_owes(wf_master *m, wf_member *who)
{
    wf_progress *p = &who->progress;
    char what[sizeof p->owes.what] = "";

    if (wf_member_is_registered(who) && who->task.role == WF_ROLE_PS)
        ps_owes(m, who, what, sizeof what);
    else if (wf_member_is_registered(who))
        worker_owes(m, who, what, sizeof what);
    else if (wf_member_is_live(who))
        snprintf(what, sizeof what, "a link from it");
    if (!what[0]) {
        p->owes = (wf_waiting){0};
    } else if (strcmp(what, p->owes.what) != 0) {
        p->owes = (wf_waiting){.whom = who->task, .since_ns = m->now_ns};
        memcpy(p->owes.what, what, sizeof what);
    }
    wf_waiting_note(&p->owes_log, &p->owes, m->now_ns);
    if (what[0])
        ask_again(m, who);
}

/* ---- who is given up ---- */

static wf_status look_at(wf_master *m, wf_member *who, wf_err *err)
{
    const wf_watch *w = &m->watch;
    char reason[256];

    if (who->peer && who->peer->last_heard_ns > who->last_heard_ns)
        wf_member_received(m, who, who->peer->last_heard_ns);
    look_what_it_owes(m, who);
    if (is_stuck(m, who, w->receiving_since_ns, reason, sizeof reason))
        return wf_master_give_up(m, who, reason, err);
    if (m->now_ns - WF_MAX(who->last_heard_ns, w->receiving_since_ns) < m->conf.dead_ns &&
        w->present_ns - who->received_present_ns < PATIENCE * m->conf.dead_ns)
        return WF_OK;
    snprintf(reason, sizeof reason, "nothing heard for %.1f s",
             (double)(m->now_ns - who->last_heard_ns) / 1e9);
    return wf_master_give_up(m, who, reason, err);
}

wf_status wf_watch_advance(wf_master *m, wf_err *err)
{
    notice_absence(m);
    if (!is_due(m))
        return WF_OK;
    for (uint32_t i = 0; i < m->n_members; i++)
        if (m->members[i].incarnation)
            WF_TRY(look_at(m, &m->members[i], err));
    return WF_OK;
}
