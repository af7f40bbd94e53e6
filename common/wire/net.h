/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/net.h - the front door of common/wire: a process's links to its peers.
 *
 * A net says hello and answers it, checks every message against the grammar, keeps a link for each
 * peer incarnation, sends signs of life, and hands the role what happened as events. It reads no
 * clock and opens no socket: transports and the time are given. One thread owns a net.
 *
 *   dialled peer:   DIALLING --welcome--> UP --reset, new incarnation--> DIALLING (event DOWN)
 *   accepted peer:  (hello) UP --silent for gone_ns, or a new hello--> gone (event DOWN)
 *
 * Invariants
 *   N1  after EV_UP for a peer, messages flow on a fresh link; nothing of an older link arrives
 *   N2  a peer pointer is valid from EV_UP (dialled: from wf_net_dial) until its EV_DOWN was taken
 *       (dialled: until wf_net_hang_up)
 */
#ifndef WF_WIRE_NET_H
#define WF_WIRE_NET_H

#include "common/base/status.h"
#include "common/wire/grammar.h"
#include "common/wire/link.h"
#include "common/wire/msg.h"
#include "common/wire/task.h"
#include "common/wire/transport.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct wf_net wf_net;

typedef struct wf_peer {
    wf_task task;
    uint64_t incarnation; /* 0 while a dialled peer has not answered */
    uint64_t pid;
    bool up;
    int64_t last_heard_ns;
    const char *address; /* of a dialled one, for messages */
    void *user;          /* the role's own */
} wf_peer;

/* A hello as the role may judge it; strings are borrowed for the call. */
typedef struct wf_hello {
    wf_task task;
    uint64_t incarnation, pid;
    const char *release;
} wf_hello;

typedef struct wf_net_conf {
    wf_task self;
    uint64_t incarnation;
    uint64_t pid;
    const char *cluster; /* copied; a hello of another cluster is refused */
    size_t credit_bytes; /* in flight to each peer */
    int64_t hello_ns;    /* between two hellos */
    int64_t ping_ns;     /* a peer hears from us at least so often */
    int64_t silent_ns;   /* EV_SILENT after so long without a word */
    int64_t gone_ns;     /* an accepted peer is forgotten after so long */
    int64_t resend_ns, ack_delay_ns;
    uint64_t (*random_id)(void *arg); /* sequence starts; never 0 */
    void *random_arg;
    /* Whether a task may come in: WF_OK, or the error that it is told. NULL: any. */
    wf_status (*admit)(void *arg, const wf_hello *hello, wf_err *err);
    void *admit_arg;
} wf_net_conf;

/* Times and credit as weft runs with them; self, incarnation, cluster are the caller's to set. */
wf_net_conf wf_net_defaults(void);

typedef enum wf_event_kind {
    WF_EV_UP = 1,  /* the link is fresh, in both directions */
    WF_EV_DOWN,    /* the peer forgot us, changed its incarnation, or is gone */
    WF_EV_SILENT,  /* nothing heard for silent_ns; comes once per silence */
    WF_EV_REFUSED, /* the peer will not have us: `err` says why; it is not dialled again */
    WF_EV_MESSAGE
} wf_event_kind;

typedef struct wf_event {
    wf_event_kind kind;
    wf_peer *peer;
    wf_msg *msg; /* of EV_MESSAGE: the taker owns it and gives it back with wf_net_free_msg */
    wf_err err;  /* of EV_REFUSED */
} wf_event;

/* A net that the caller owns. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_net_new(const wf_net_conf *conf, wf_net **out, wf_err *err);
/* Closes all transports and frees all; what was sent may still leave for linger_ms. NULL is fine.
 */
void wf_net_free(wf_net **n, int linger_ms);

/* Answers hellos that come in by t; takes *t. At most one. */
void wf_net_listen(wf_net *n, wf_transport **t);
/* A peer to be dialled over t, from now on until it answers; takes *t. `address` is copied. */
WF_MUST_USE wf_status wf_net_dial(wf_net *n, wf_task task, const char *address, wf_transport **t,
                                  wf_peer **out, wf_err *err);
/* Forgets a dialled peer and closes its transport; *p becomes NULL. */
void wf_net_hang_up(wf_net *n, wf_peer **p);

/* A message of `kind`, to be filled and sent. */
WF_MUST_USE wf_status wf_net_msg(wf_net *n, uint16_t kind, wf_msg **out, wf_err *err);
void wf_net_free_msg(wf_net *n, wf_msg **m);
/* Queues a message for a peer and takes *m. For a dialled peer that is not up yet it waits; when
 * the link is lost it is dropped, and EV_DOWN tells. Errors: WF_NOMEM, WF_NOTFOUND for a peer that
 * is gone; *m is freed then. */
WF_MUST_USE wf_status wf_net_send(wf_net *n, wf_peer *p, wf_lane lane, uint64_t key, wf_msg **m,
                                  wf_err *err);

/* Reads what has arrived and writes what may leave. */
void wf_net_poll(wf_net *n, int64_t now_ns);
/* Only writes what may leave: for use while a batch of messages is being made. */
void wf_net_flush(wf_net *n, int64_t now_ns);
/* The next event; false when there is none until the next poll. */
bool wf_net_event(wf_net *n, int64_t now_ns, wf_event *ev);
/* When to poll next if nothing arrives. */
int64_t wf_net_deadline(const wf_net *n, int64_t now_ns);

/* Transports in use, for wf_zmq_wait; the array is the net's. */
wf_transport *const *wf_net_transports(const wf_net *n, size_t *count);
/* Messages dropped because they were no message of weft's, or not allowed here. */
uint64_t wf_net_bad_messages(const wf_net *n);

#endif
