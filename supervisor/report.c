/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor/report.c - the master is told how processes of ps and workers ended. Where it knows of
 * an end, or the task runs again, a second report changes nothing there. */
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"
#include "supervisor/state.h"

#include <stdio.h>

static wf_status send(wf_supervisor *s, const wf_ward *w, wf_err *err)
{
    Weft__Died body = WEFT__DIED__INIT;
    wf_msg *m = NULL;
    wf_status rc;

    body.role = w->is->task.role;
    body.index = w->is->task.index;
    body.pid = w->last.pid;
    body.down = w->last.down;
    body.reason = (char *)w->last.reason;
    body.session = (char *)s->conf.session;
    WF_TRY(wf_net_msg(s->net, WF_DIED, &m, err));
    rc = wf_control_put(m, &body.base, err);
    if (rc == WF_OK)
        rc = wf_net_send(s->net, s->master, WF_LANE_CONTROL, 0, &m, err);
    wf_net_free_msg(s->net, &m);
    return rc;
}

/* Without a link it waits for the next one; without memory, for the next turn. */
static void report(wf_supervisor *s, const wf_ward *w)
{
    s->unreported |= s->master->up && send(s, w, NULL) != WF_OK;
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
