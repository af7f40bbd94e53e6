/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/net_state.h - what net.c and hello.c share; nobody else includes it. */
#ifndef WF_WIRE_NET_STATE_H
#define WF_WIRE_NET_STATE_H

#include "common/wire/net.h"

typedef struct peer {
    wf_peer pub;
    wf_transport *transport; /* its own when dialled, the listener's when accepted */
    wf_route route;
    wf_link *link;       /* NULL: dialling, or gone */
    uint64_t first;      /* our sequence start */
    uint64_t peer_first; /* theirs */
    uint32_t attempt;    /* counts the dialler's starts */
    int64_t last_sent_ns, hello_at_ns, hello_wait_ns;
    bool dialled, silent_told, refused, down_owed, up_owed, gone;
    wf_err refusal;
    wf_link *waiting; /* messages sent before the link is up are queued here */
    char address[128];
} peer;

struct wf_net {
    wf_net_conf conf;
    char cluster[128];
    wf_msg_pool pool;
    wf_transport *listener;
    peer **peers;
    size_t n_peers, peers_room;
    wf_transport **transports;
    size_t n_transports;
    size_t next_event; /* where the search for events goes on, so that no peer starves another */
    uint64_t bad_messages;
};

/* net.c */
wf_status wf_net_add_peer(wf_net *n, peer **out, wf_err *err);
/* Sends a message outside any link. It may be lost, so nothing depends on whether it went. */
void wf_net_send_loose(wf_net *n, wf_transport *t, const wf_route *to, wf_msg *m);

/* hello.c - takes what is said of links, and makes and voids them. */
wf_link_conf wf_hello_link_conf(const wf_net *n, const peer *p);
/* A start that leaves room for all messages that a link may ever carry. */
uint64_t wf_hello_first(const wf_net *n);
/* Over a link that is up it asks whether the other side still knows it, by that side's start. */
void wf_hello_say(wf_net *n, peer *p, int64_t now_ns);
/* Says that message `sequence` is of no link that is known here. */
void wf_hello_reset(wf_net *n, wf_transport *t, const wf_route *to, uint64_t sequence);
/* The link of a peer is void; a dialled peer is dialled anew with a new start. */
void wf_hello_lose(wf_net *n, peer *p);
/* The peer that dialled us with this incarnation, or NULL. */
peer *wf_hello_accepted(const wf_net *n, uint64_t incarnation);
void wf_hello_on_hello(wf_net *n, const wf_route *from, const wf_msg *m, int64_t now_ns);
void wf_hello_on_welcome(wf_net *n, peer *p, const wf_msg *m, int64_t now_ns);
void wf_hello_on_refuse(wf_net *n, peer *p, const wf_msg *m);
void wf_hello_on_reset(wf_net *n, peer *p, const wf_msg *m);

#endif
