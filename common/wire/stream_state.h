/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/stream_state.h - what stream.c and stream_reach.c share; nobody else includes it. */
#ifndef WF_WIRE_STREAM_STATE_H
#define WF_WIRE_STREAM_STATE_H

#include "common/wire/stream_conn.h"
#include "common/wire/wires.h"

typedef struct stream_slot {
    wf_stream_conn *c;
    bool writes; /* the epoll tells when it can be written to */
} stream_slot;

typedef struct stream_transport {
    wf_transport base; /* its fd is an epoll */
    wf_transport *far;
    bool listens;
    char address[WF_ADDRESSES_MAX];
    wf_buf_pool *pool;
    stream_slot *slots; /* of one that dials: one at most */
    size_t n, room, turn;
    uint64_t numbers, bad;
    bool fresh;
    int64_t far_at_ns; /* to look at the far transport */
    /* of one that listens */
    int door; /* where others connect; -1: nobody has asked yet */
    uint16_t port;
    uint8_t token[WF_STREAM_TOKEN];
    /* of one that dials */
    bool asked;
    int64_t asked_ns, try_at_ns;
} stream_transport;

/* Of one that dials, before a message of that kind: asks for a connection if it is time. */
void wf_stream_want(stream_transport *s, uint16_t kind);
/* Takes an ask or its answer off what the far transport brought; false for any other message. */
bool wf_stream_take_note(stream_transport *s, wf_msg_pool *pool, const wf_route *from, wf_msg **m);
/* What has happened at the sockets. Frees connections that are over. */
void wf_stream_look(stream_transport *s);
/* Gives up what was not made in time, and what the far transport's new connection outlived. */
void wf_stream_end_late(stream_transport *s, int64_t now_ns, bool far_is_fresh);
/* Has the epoll tell when a connection can be written to, if that is waited for. */
void wf_stream_watch_writes(stream_transport *s, stream_slot *slot);

#endif
