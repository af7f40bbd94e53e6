/* SPDX-License-Identifier: Apache-2.0 */
/* master/hung.c - processes that hang. A member that is given up ends by itself as soon as it hears
 * of that. One that cannot hear, as its process stands still, keeps its place: its supervisor
 * starts no other while it runs. So the supervisor is asked to kill it. */
#include "common/base/clock.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "master/top.h"

#include <string.h>

/* Since it was given up: time to hear of it, and to end. */
static const int64_t HUNG_NS = 10 * WF_NS_PER_S;

static bool hangs(const wf_master *m, const wf_member *who, const Weft__Process *p)
{
    return who && who->state == WF_MEMBER_ABSENT && !who->incarnation && who->pid == p->pid &&
           m->now_ns - who->since_ns >= HUNG_NS;
}

static wf_status have_killed(wf_master *m, wf_peer *supervisor, const wf_member *who, wf_err *err)
{
    Weft__Hung body = WEFT__HUNG__INIT;
    wf_msg *out = NULL;
    char text[32];
    wf_status rc;

    WF_LOG_WARN("member.hangs", "task=%s pid=%lu reason=\"%s\"",
                wf_task_str(who->task, text, sizeof text), (unsigned long)who->pid, who->reason);
    body.role = who->task.role;
    body.index = who->task.index;
    body.pid = who->pid;
    body.reason = (char *)who->reason;
    WF_TRY(wf_net_msg(m->net, WF_HUNG, &out, err));
    rc = wf_control_put(out, &body.base, err);
    if (rc == WF_OK)
        rc = wf_master_send(m, supervisor, &out, err);
    wf_net_free_msg(m->net, &out);
    return rc;
}

wf_status wf_hung_on_processes(wf_master *m, wf_peer *from, const wf_msg *msg, wf_err *err)
{
    Weft__Processes *body = NULL;
    wf_status rc = wf_control_get(msg, &weft__processes__descriptor, &body, err);

    for (size_t i = 0; rc == WF_OK && i < body->n_processes; i++) {
        const Weft__Process *p = body->processes[i];
        const wf_member *who = wf_member_of(m, (wf_task){(wf_role)p->role, p->index});

        if (hangs(m, who, p) && wf_master_is_supervisor(m, who, body->session))
            rc = have_killed(m, from, who, err);
    }
    wf_control_free(&body);
    return rc;
}
