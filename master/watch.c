/* SPDX-License-Identifier: Apache-2.0 */
/* master/watch.c - gives up members that have been silent, or without progress, for too long.
 *
 * Silence counts only while the master could receive. After an absence of its own (the process was
 * stopped, or held up in a call) every member has the full time again from the master's return:
 * messages of that time may take many iterations to read, and peers that missed the master dial
 * again. Absences that repeat must not protect a dead member for ever, so a member that sent
 * nothing during four times the limit of the master's own presence is given up in any case.
 */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "master/state.h"

#include <stdio.h>

enum {
    LOOKS = 20,       /* in the time after which a silent member is given up */
    PATIENCE = 4,     /* so many times that time of the master's presence end it in any case */
    MANY_EVENTS = 256 /* in one iteration: others may still be unread */
};
static const int64_t ABSENCE_NS = WF_NS_PER_S;

void wf_watch_begin(wf_watch *w, int64_t now_ns)
{
    *w = (wf_watch){.iteration_ns = now_ns, .receiving_since_ns = now_ns, .looked_ns = now_ns};
}

void wf_watch_received(const wf_master *m, wf_member *who, int64_t at_ns)
{
    if (at_ns < who->last_heard_ns)
        return;
    who->last_heard_ns = at_ns;
    who->received_present_ns = m->watch.present_ns;
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

static wf_status look_at(wf_master *m, wf_member *who, wf_err *err)
{
    const wf_watch *w = &m->watch;
    char reason[256];

    if (who->peer && who->peer->last_heard_ns > who->last_heard_ns)
        wf_watch_received(m, who, who->peer->last_heard_ns);
    wf_progress_look(m, who);
    if (wf_progress_is_stuck(m, who, w->receiving_since_ns, reason, sizeof reason))
        return wf_members_give_up(m, who, reason, err);
    if (m->now_ns - WF_MAX(who->last_heard_ns, w->receiving_since_ns) < m->conf.dead_ns &&
        w->present_ns - who->received_present_ns < PATIENCE * m->conf.dead_ns)
        return WF_OK;
    snprintf(reason, sizeof reason, "nothing heard for %.1f s",
             (double)(m->now_ns - who->last_heard_ns) / 1e9);
    return wf_members_give_up(m, who, reason, err);
}

wf_status wf_members_watch(wf_master *m, wf_err *err)
{
    notice_absence(m);
    if (!is_due(m))
        return WF_OK;
    for (uint32_t i = 0; i < m->n_members; i++)
        if (m->members[i].incarnation)
            WF_TRY(look_at(m, &m->members[i], err));
    return WF_OK;
}
