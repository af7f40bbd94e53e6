/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/net_state.h - what net.c, hello.c and peers.c share; nobody else includes it. */
#ifndef WF_WIRE_NET_STATE_H
#define WF_WIRE_NET_STATE_H

#include "common/base/index.h"
#include "common/wire/net.h"
#include "common/wire/wires.h"

/* A silent peer is pinged again after this part of its silence. */
enum { WF_NET_SILENCE_PART = 8 };

typedef struct peer {
    wf_peer pub;
    size_t at;               /* place in the net's list */
    wf_transport *transport; /* its own when dialled, the listener's when accepted */
    wf_route route;
    wf_link *link;       /* NULL: dialling, or gone */
    uint64_t first;      /* our sequence start */
    uint64_t peer_first; /* theirs */
    uint32_t attempt;    /* counts the dialler's starts */
    int64_t last_sent_ns, hello_at_ns, hello_wait_ns, tend_at_ns;
    bool dialled, refused, down_owed, up_owed, gone;
    bool asks_name; /* an accepted client that did not know whom it dials */
    wf_err refusal;
    wf_link *waiting; /* messages sent before the link is up are queued here */
    wf_msg *beat;     /* the newest that the role has not taken */
    uint64_t resent;  /* bytes, of links that are over */
    bool is_active;   /* in the list of those that may have an event */
    bool is_sending;  /* in the list of those that may have something to send */
    struct peer *next_active, *next_sending;
    char address[WF_ADDRESSES_MAX], delay[256];
} peer;

struct wf_net {
    uint32_t attempts; /* of all dialled peers: one that is dialled anew counts on from there */
    wf_net_conf conf;
    char cluster[128];
    wf_msg_pool pool;
    wf_transport *listeners[WF_NET_LISTENERS];
    size_t n_listeners;
    peer **peers;
    size_t n_peers, peers_room;
    uint32_t n_accepted, n_accepted_of[WF_N_ROLES];
    wf_index accepted; /* by incarnation */
    peer **dialled;
    size_t n_dialled;
    wf_transport **transports; /* the listeners, then those of the dialled */
    size_t n_transports;
    peer *active, **active_end;
    peer *sending;
    int64_t soonest_ns, scanned_ns; /* the next deadline of a peer; when all were looked at */
    int64_t logged_ns;              /* of a bad message; such lines are rare */
    uint64_t bad[WF_N_BAD];
};

/* peers.c - the lists of peers. */
/* Room for one more peer beside the listeners. */
wf_status wf_net_make_room(wf_net *n, wf_err *err);
wf_status wf_net_add_peer(wf_net *n, bool dialled, wf_task task, peer **out, wf_err *err);
/* Frees a peer, and closes its transport if it was dialled. */
void wf_net_remove_peer(wf_net *n, peer *p);
/* The peer that dialled us with this incarnation, or NULL. */
peer *wf_net_accepted(const wf_net *n, uint64_t incarnation);
/* Names the peer under its incarnation. Errors: WF_NOMEM. */
wf_status wf_net_name_accepted(wf_net *n, peer *p, wf_err *err);
void wf_net_unname_accepted(wf_net *n, const peer *p);
/* The peer may have an event; it may have something to send; it has a deadline. */
void wf_net_activate(wf_net *n, peer *p);
void wf_net_will_send(wf_net *n, peer *p);
void wf_net_wake_at(wf_net *n, int64_t at_ns);
/* Counts a dropped message, with a line in the log now and then. */
void wf_net_count_bad(wf_net *n, wf_bad reason, const char *from, const char *why, int64_t now_ns);

/* net.c */
/* Sends a message outside any link. It may be lost, so nothing depends on its delivery. */
void wf_net_send_loose(wf_net *n, wf_transport *t, const wf_route *to, wf_msg *m);
/* Sends a ping over the peer's link now. */
void wf_net_ping(wf_net *n, peer *p, int64_t now_ns);

/* hello.c - handles hello, welcome, refuse and reset, and makes and voids links. */
wf_link_conf wf_hello_link_conf(const wf_net *n, const peer *p);
/* A start that leaves room for all messages that a link may ever carry. */
uint64_t wf_hello_first(const wf_net *n);
/* Sends a hello. Over a link that is up it asks whether the other side still knows that link, by
 * that side's start. */
void wf_hello_say(wf_net *n, peer *p, int64_t now_ns);
/* Sends a reset: message `sequence` belongs to no link that is known here. */
void wf_hello_reset(wf_net *n, wf_transport *t, const wf_route *to, uint64_t sequence);
/* The link of a peer is void; a dialled peer is dialled anew with a new start. */
void wf_hello_lose(wf_net *n, peer *p);
void wf_hello_on_hello(wf_net *n, wf_transport *t, const wf_route *from, const wf_msg *m,
                       int64_t now_ns);
void wf_hello_on_welcome(wf_net *n, peer *p, const wf_msg *m, int64_t now_ns);
void wf_hello_on_refuse(wf_net *n, peer *p, const wf_msg *m, int64_t now_ns);
void wf_hello_on_reset(wf_net *n, peer *p, const wf_msg *m);

#endif
