/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor/report.c - the master is told how processes of ps and workers ended. Where it knows of
 * an end, or the task runs again, a second report changes nothing there. */
#include "supervisor/state.h"

#include <stdio.h>

/* A report is of one process. The master passes it over while it knows of another one, whose end it
 * did not hear of for want of a link, and has yet to lose. So a task that is down is reported again
 * and again. */
static const int64_t AGAIN_NS = WF_NS_PER_S;

/* Without a link it waits for the next one; without memory, for the next turn. */
static void report(wf_supervisor *s, const wf_ward *w)
{
    Weft__Died body = WEFT__DIED__INIT;

    body.role = w->is->task.role;
    body.index = w->is->task.index;
    body.pid = w->last.pid;
    body.down = w->last.down;
    body.reason = (char *)w->last.reason;
    body.session = (char *)s->conf.session;
    s->unreported |= wf_session_send(&s->session, WF_DIED, &body.base, NULL) != WF_OK;
}

void wf_report_end(wf_supervisor *s, wf_ward *w, uint64_t pid, bool down, const char *reason)
{
    if (w->is->task.role == WF_ROLE_MASTER) /* nobody is there to be told */
        return;
    w->last = (wf_last_end){.pid = pid, .known = true, .down = down};
    snprintf(w->last.reason, sizeof w->last.reason, "%s", reason);
    report(s, w);
}

void wf_report_all(wf_supervisor *s)
{
    s->unreported = false;
    for (uint32_t i = 0; i < s->conf.n; i++)
        if (s->wards[i].last.known)
            report(s, &s->wards[i]);
}

void wf_report_advance(wf_supervisor *s, int64_t now_ns)
{
    if (s->unreported)
        wf_report_all(s);
    if (now_ns < s->again_ns)
        return;
    s->again_ns = now_ns + AGAIN_NS;
    for (uint32_t i = 0; i < s->conf.n; i++)
        if (s->wards[i].state == WF_LIFE_DOWN && s->wards[i].last.known)
            report(s, &s->wards[i]);
}
