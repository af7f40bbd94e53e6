/* SPDX-License-Identifier: Apache-2.0 */
/* worker/sessions/sessions.h - a worker computes what clients' sessions ask for, beside training.
 *
 * A run: READING, until the ps have sent all variables of its plan; COMPUTING, here and by other
 * workers; WRITING, one change after the other, each when the ps has made the one before; then it
 * is answered. Changes whose results are computed with are made before, while it computes. What it
 * sends to other tasks lies here until they ask (rendezvous.h). A run whose client has lost its
 * link is dropped: the client asks again over the next one, and changes that were made have
 * sequences by which the ps know them.
 *
 * No socket, no clock, no thread: events of two nets and the time go in. One net takes in clients,
 * as this worker; over the other one ps and
 * other workers are dialled, as a client. Nothing is shared with the job
 * that the worker trains.
 *
 * Invariants
 *   S1  a run computes with variables that were all read after it came
 *   S2  a change of a run is sent when all changes before it in the run are made; and when all is
 *       computed, unless fragments wait for its result
 */
#ifndef WF_WORKER_SESSIONS_SESSIONS_H
#define WF_WORKER_SESSIONS_SESSIONS_H

#include "common/base/status.h"
#include "common/wire/net.h"
#include "common/wire/tasks.h"
#include "worker/sessions/rendezvous.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct wf_sessions wf_sessions;

typedef struct wf_sessions_conf {
    uint32_t index;        /* of the worker */
    const wf_tasks *tasks; /* of the cluster */
    wf_net *net, *to_ps;
    /* A transport to a ps or worker. */
    wf_status (*dial)(void *arg, wf_task task, const char *address, wf_transport **out,
                      wf_err *err);
    void *dial_arg;
    uint32_t threads;          /* that compute; they are started with the first plan */
    bool checksums;            /* of payloads that are sent */
    wf_rendezvous_limits sent; /* of values that nobody has received */
} wf_sessions_conf;

/* The caller owns *out; what *conf points to is borrowed for its life. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_sessions_new(const wf_sessions_conf *conf, wf_sessions **out, wf_err *err);
/* Before the nets are freed. NULL is fine. */
void wf_sessions_free(wf_sessions **s);

/* For wf_net_conf.admit, with the sessions as its argument. */
wf_status wf_sessions_admit(void *sessions, const wf_hello *hello, wf_err *err);

/* An event of the net with clients, or of the one that dials; a message is taken. Errors: WF_NOMEM.
 */
WF_MUST_USE wf_status wf_sessions_on_client(wf_sessions *s, wf_event *ev, int64_t now_ns,
                                            wf_err *err);
WF_MUST_USE wf_status wf_sessions_on_ps(wf_sessions *s, wf_event *ev, int64_t now_ns, wf_err *err);
/* Ends runs whose time is over. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_sessions_advance(wf_sessions *s, int64_t now_ns, wf_err *err);
/* When the next run's time is over; INT64_MAX: never. */
int64_t wf_sessions_deadline(const wf_sessions *s);

#endif
