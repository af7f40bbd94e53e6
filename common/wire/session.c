/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/session.c */
#include "common/wire/session.h"
#include "common/log/log.h"
#include "common/wire/control.h"

#include <stdio.h>

wf_status wf_session_send(wf_session *s, uint16_t kind, const ProtobufCMessage *body, wf_err *err)
{
    wf_msg *m = NULL;
    wf_status rc;

    if (!s->peer->up)
        return WF_OK;
    WF_TRY(wf_net_msg(s->net, kind, &m, err));
    rc = body ? wf_control_put(m, body, err) : WF_OK;
    if (s->stamp)
        s->stamp(s->role, &m->head);
    if (rc == WF_OK)
        rc = wf_net_send(s->net, s->peer, WF_LANE_CONTROL, 0, &m, err);
    wf_net_free_msg(s->net, &m);
    return rc;
}

static wf_status report_fault(wf_session *s, wf_err *err)
{
    Weft__Fault body = WEFT__FAULT__INIT;

    body.status = s->fault.status;
    body.what = s->fault.what;
    body.hint = s->fault.hint;
    if (s->fault_split.end > s->fault_split.begin)
        body.split = &s->fault_split;
    return wf_session_send(s, WF_FAULT, &body.base, err);
}

wf_status wf_session_register(wf_session *s, Weft__Register *body, wf_err *err)
{
    body->session = (char *)s->supervisor;
    WF_TRY(wf_session_send(s, WF_REGISTER, &body->base, err));
    return s->fault.status != WF_OK ? report_fault(s, err) : WF_OK;
}

void wf_session_lost(wf_session *s, int64_t now_ns)
{
    s->alone_ns = now_ns;
}

void wf_session_fault(wf_session *s, const wf_err *why, const Weft__Split *split)
{
    wf_assert(why->status != WF_OK);
    WF_LOG_ERROR("task.fault", "%s", why->what);
    if (s->fault.status == WF_OK) {
        s->fault = *why;
        s->fault_split = split ? *split : (Weft__Split)WEFT__SPLIT__INIT;
    }
    s->fault_owed = report_fault(s, NULL) != WF_OK;
    if (s->fault_owed)
        WF_LOG_ERROR("task.fault_unsent", "no memory");
}

void wf_session_forget_fault(wf_session *s)
{
    s->fault.status = WF_OK;
    s->fault_owed = false;
}

void wf_session_advance(wf_session *s)
{
    if (s->fault_owed)
        s->fault_owed = report_fault(s, NULL) != WF_OK;
}

wf_status wf_session_on_dismiss(const wf_session *s, const wf_msg *m, wf_err *err)
{
    const char *role = wf_role_name(s->self.role);

    if (m->head.request == WF_DISMISS_SUPERSEDED)
        return wf_fail(err, WF_SUPERSEDED, NULL, "%s %u: a newer process has this task's place",
                       role, s->self.index);
    return wf_fail(err, WF_TIMEOUT, "it starts anew by itself under \"weft up\"",
                   "%s %u: the master gave this process up after a silence", role, s->self.index);
}

void wf_session_waiting(const wf_session *s, wf_waiting *out)
{
    *out = (wf_waiting){.since_ns = s->alone_ns};
    if (s->peer->up)
        return;
    out->whom = (wf_task){WF_ROLE_MASTER, 0};
    snprintf(out->what, sizeof out->what, "a link to %.80s", s->peer->address);
}
