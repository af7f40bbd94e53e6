/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/net.h - the front door of common/wire: a process's links to its peers.
 *
 * A net sends and answers hellos, checks every message against the grammar and every payload
 * against its checksum, keeps a link for each peer incarnation, sends pings, and hands events to
 * the role. It reads no clock and opens no socket: transports and the time are given. One thread
 * owns a net. docs/wire.md has the protocol.
 *
 *   dialled peer:   DIALLING --welcome--> UP --reset, new incarnation--> DIALLING (event DOWN)
 *                   DIALLING --refused with WF_AGAIN--> DIALLING    --refused--> event REFUSED
 *   accepted peer:  (hello) UP --silent for gone_ns unless `keep`, or a new hello--> gone (DOWN)
 *
 * A peer is known by its incarnation, not by its connection: each message of an accepted peer
 * brings the route for the answers, so a connection may break and come back unnoticed.
 *
 * The cost of an event does not depend on the number of peers: peers with something to take or to
 * send are in lists. All peers are looked at only when one of them has a deadline, and at most once
 * a millisecond.
 *
 * Invariants
 *   N1  after EV_UP for a peer, messages flow on a fresh link; nothing of an older link arrives
 *   N2  a peer pointer is valid from EV_UP (dialled: from wf_net_dial) until its EV_DOWN was taken
 *       or wf_net_drop was called (dialled: until wf_net_hang_up)
 *   N3  a message whose payload is damaged is not acknowledged: it counts as lost
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

enum { WF_NET_LISTENERS = 4 };

typedef struct wf_net wf_net;

typedef struct wf_peer {
    wf_task task;         /* of a dialled one whose role was not known: once it is up */
    uint64_t incarnation; /* 0 while a dialled peer has not answered */
    uint64_t pid;
    bool up;
    int64_t last_heard_ns;
    const char *address; /* of a dialled one, for messages */
    const char *delay;   /* of a dialled one: why it refuses for now; "" */
    bool keep;           /* the role's: an accepted peer is kept however long it is silent */
    void *user;          /* the role's own */
} wf_peer;

/* A hello, for the role to admit or refuse; strings are borrowed for the call. */
typedef struct wf_hello {
    wf_task task;
    uint64_t incarnation, pid;
    const char *release;
    int64_t now_ns; /* when it arrived */
} wf_hello;

typedef struct wf_net_conf {
    wf_task self;
    uint64_t incarnation;
    uint64_t pid;
    const char *cluster;    /* copied; a hello of another cluster is refused */
    size_t credit_bytes;    /* in flight to each peer */
    uint32_t accepted_most; /* peers that are let in at one time */
    int64_t hello_ns;       /* between two hellos */
    int64_t ping_ns;        /* between two messages to a peer, at most, while it answers */
    int64_t gone_ns;        /* an accepted peer that is silent so long is forgotten */
    int64_t probe_ns, ack_delay_ns;
    uint64_t (*random_id)(void *arg); /* sequence starts; never 0 */
    void *random_arg;
    /* Whether a task is admitted: WF_OK, or the error that is sent to it; after WF_AGAIN it asks
     * again later. NULL: every task is. */
    wf_status (*admit)(void *arg, const wf_hello *hello, wf_err *err);
    void *admit_arg;
    /* A hello was refused for good, whoever sent it; with admit_arg. NULL: nobody is told. */
    void (*on_refused)(void *arg, const wf_hello *hello, const wf_err *why);
    /* A beat of an incarnation that has no link here: its main thread may have been in a long call
     * since before this net was made. The message is borrowed. NULL: dropped. */
    void (*on_stranger)(void *arg, const wf_msg *beat, int64_t now_ns);
    void *stranger_arg;
} wf_net_conf;

/* Times and credit as weft runs with them; self, incarnation, cluster are the caller's to set. */
wf_net_conf wf_net_defaults(void);

typedef enum wf_event_kind {
    WF_EV_UP = 1,  /* the link is fresh, in both directions */
    WF_EV_DOWN,    /* the peer forgot us, changed its incarnation, or is gone */
    WF_EV_REFUSED, /* the peer refuses this task: `err` says why; it is not dialled again */
    WF_EV_MESSAGE,
    WF_EV_BEAT /* a heartbeat of an accepted peer, outside the link; has a message too */
} wf_event_kind;

typedef struct wf_event {
    wf_event_kind kind;
    wf_peer *peer;
    wf_msg *msg; /* of EV_MESSAGE and EV_BEAT: the taker's, given back with wf_net_free_msg */
    wf_err err;  /* of EV_REFUSED */
} wf_event;

/* A net that the caller owns. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_net_new(const wf_net_conf *conf, wf_net **out, wf_err *err);
/* Closes all transports and frees all. Sent messages may still leave for linger_ms; if that is not
 * 0, dialled peers are sent a bye. NULL is fine. */
void wf_net_free(wf_net **n, int linger_ms);

/* Answers hellos that arrive over t; takes *t. A net may listen over WF_NET_LISTENERS. */
void wf_net_listen(wf_net *n, wf_transport **t);
/* A peer to be dialled over t, from now on until it answers; takes *t, also on failure. `address`
 * is copied. A client may leave the task's role WF_ROLE_NONE: any task answers, and says what it
 * is; and its cluster "": a task of any cluster does. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_net_dial(wf_net *n, wf_task task, const char *address, wf_transport **t,
                                  wf_peer **out, wf_err *err);
/* Forgets a dialled peer and closes its transport; *p becomes NULL. */
void wf_net_hang_up(wf_net *n, wf_peer **p);
/* Forgets an accepted peer, without an event; its queue is dropped, and its next message is
 * answered with a reset. *p becomes NULL. */
void wf_net_drop(wf_net *n, wf_peer **p);

/* A message of `kind`, to be filled and sent. */
WF_MUST_USE wf_status wf_net_msg(wf_net *n, uint16_t kind, wf_msg **out, wf_err *err);
void wf_net_free_msg(wf_net *n, wf_msg **m);
/* Another message like m, with the same payload. */
WF_MUST_USE wf_status wf_net_copy_msg(wf_net *n, const wf_msg *m, wf_msg **out, wf_err *err);
/* Memory for what is to be sent to a peer, of the kind that travels there best: where it is of the
 * transport's own, sending copies nothing. Zeroed, or with the content of an earlier use; the
 * caller's. NULL when there is none. */
wf_buf *wf_net_buf(const wf_peer *p, size_t bytes);
/* The same for what is sent to several, of which it names one. */
wf_buf *wf_net_buf_for_several(const wf_peer *one, size_t bytes);
/* Whether a peer reads so many bytes of wf_net_buf's where they lie, and may keep what it was sent
 * there. */
bool wf_net_lends(const wf_peer *p, size_t bytes);
/* Queues a message for a peer and takes *m. For a dialled peer that is not up yet it waits; when
 * the link is lost it is dropped, and EV_DOWN follows. Errors: WF_NOMEM, WF_NOTFOUND for a peer
 * that is gone; *m is freed then. */
WF_MUST_USE wf_status wf_net_send(wf_net *n, wf_peer *p, wf_lane lane, uint64_t key, wf_msg **m,
                                  wf_err *err);

/* Receives all messages that have arrived and sends those that may leave. */
void wf_net_poll(wf_net *n, int64_t now_ns);
/* Only sends messages that may leave: for use while a batch of messages is being made. */
void wf_net_flush(wf_net *n, int64_t now_ns);
/* The next event; false when there is none until the next poll. */
bool wf_net_event(wf_net *n, int64_t now_ns, wf_event *ev);
/* When to poll next if nothing arrives. */
int64_t wf_net_deadline(const wf_net *n, int64_t now_ns);

/* Transports in use, for wf_wait; the array is the net's. */
wf_transport *const *wf_net_transports(const wf_net *n, size_t *count);
/* Accepted peers of a role. */
uint32_t wf_net_accepted_of(const wf_net *n, wf_role role);
/* Bytes queued for a peer beyond its credit: a slow peer's, for the role to bound. */
size_t wf_net_queued_bytes(const wf_peer *p);
/* Bytes queued for a peer or sent to it and not acknowledged. */
size_t wf_net_owed_bytes(const wf_peer *p);
/* Bytes sent to a peer more than once, over all links to it. */
uint64_t wf_net_resent_bytes(const wf_peer *p);
/* Peers in the order of their places; NULL past the end. */
const wf_peer *wf_net_peer_at(const wf_net *n, size_t i);

/* Why a message was dropped or a hello was refused. */
typedef enum wf_bad {
    WF_BAD_FRAME = 0, /* no weft header, a damaged one, or parts out of bounds */
    WF_BAD_KIND,      /* not allowed by the grammar, here or from that role */
    WF_BAD_BODY,      /* a hello or its answer that cannot be read */
    WF_BAD_PAYLOAD,   /* part table or payload damaged */
    WF_BAD_HELLO,     /* refused for its content */
    WF_BAD_CROWD,     /* refused for now, because there is no place */
    WF_N_BAD
} wf_bad;
uint64_t wf_net_bad(const wf_net *n, wf_bad reason);
/* The sum of all but refused hellos. */
uint64_t wf_net_bad_messages(const wf_net *n);
/* The process that this net says hello as. */
uint64_t wf_net_pid(const wf_net *n);
/* "frame", "kind", ... */
const char *wf_bad_name(wf_bad reason);

#endif
