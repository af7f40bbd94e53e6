/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/session.h - the session of a ps or worker with the master, whatever it holds.
 *
 * Without a link nothing is sent: over each fresh link the role registers, which says all that
 * matters. A fault that it stands with follows every register, since the first report may be lost.
 * A dismissal ends the process. A supervisor uses its sending alone.
 */
#ifndef WF_WIRE_SESSION_H
#define WF_WIRE_SESSION_H

#include "common/wire/control.pb-c.h"
#include "common/wire/net.h"
#include "common/wire/waiting.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct wf_session {
    wf_net *net;   /* borrowed, like all that is pointed to */
    wf_peer *peer; /* the master, dialled */
    wf_task self;
    const char *supervisor; /* the id of the supervisor that started this process; "": none did */
    /* Fills in what every message of the role carries: job, generation, view and the like. NULL:
     * nothing. */
    void (*stamp)(const void *role, wf_header *head);
    const void *role;
    int64_t alone_ns;        /* when the link was lost last */
    wf_err fault;            /* that the role stands with; status WF_OK: none */
    Weft__Split fault_split; /* whose records were in hand then; empty: none */
    bool fault_owed;         /* it could not be reported, for lack of memory */
} wf_session;

/* Sends to the master; `body` may be NULL. Errors: those of wf_control_put, WF_NOMEM. */
WF_MUST_USE wf_status wf_session_send(wf_session *s, uint16_t kind, const ProtobufCMessage *body,
                                      wf_err *err);
/* The link is up: sends what the role holds, and the fault. Fills in body->session. Errors: those
 * of wf_session_send. */
WF_MUST_USE wf_status wf_session_register(wf_session *s, Weft__Register *body, wf_err *err);
/* The link is lost. */
void wf_session_lost(wf_session *s, int64_t now_ns);

/* Reports a failure that ends the job or this task's part in it; `split` may be NULL. The first one
 * stands until it is forgotten: what follows from it is never shown before it. */
void wf_session_fault(wf_session *s, const wf_err *why, const Weft__Split *split);
void wf_session_forget_fault(wf_session *s);
/* Reports a fault that could not be reported. */
void wf_session_advance(wf_session *s);

/* A dismissal: WF_SUPERSEDED when a newer process has this task's place, WF_TIMEOUT when the master
 * has given this one up. */
WF_MUST_USE wf_status wf_session_on_dismiss(const wf_session *s, const wf_msg *m, wf_err *err);
/* What a task waits for that has nothing to do: a link to the master, or nobody. */
void wf_session_waiting(const wf_session *s, wf_waiting *out);

#endif
