/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/zeromq_state.h - what the files of the ZeroMQ transport share; nobody else includes
 * it.
 *
 *   zeromq.c          contexts, sockets and their options
 *   zeromq_message.c  messages to parts and back
 *   zeromq_dial.c     the connection of a transport that dials
 *   zeromq_listen.c   the connections of one that listens
 */
#ifndef WF_WIRE_ZEROMQ_STATE_H
#define WF_WIRE_ZEROMQ_STATE_H

#include "common/wire/wires.h"
#include "common/wire/zeromq.h"

struct wf_zmq {
    void *context;
};

typedef struct zmq_transport {
    wf_transport base;
    void *context, *socket;
    bool router;
    /* of one that listens */
    int port;         /* 0: not known yet, or no TCP */
    int64_t sweep_ns; /* when to look at its connections */
    /* of a dialled one */
    char address[WF_ADDRESSES_MAX];
    void *monitor;     /* reports connections */
    int fd;            /* the connection's, which belongs to ZeroMQ; -1: none, or no TCP */
    int64_t life_ns;   /* its last sign of life */
    uint64_t received; /* bytes received over it by then */
    uint64_t taken;    /* bytes that the other side had taken by then */
    bool fresh;        /* connected since the last look */
} zmq_transport;

/* zeromq.c */
int wf_zmq_set_int(void *socket, int option, int value);
/* A socket with weft's options, not bound or connected yet. */
WF_MUST_USE wf_status wf_zmq_open(wf_zmq *z, int type, const wf_transport_ops *ops,
                                  zmq_transport **out, wf_err *err);
bool wf_zmq_ready(wf_transport *t);
void wf_zmq_close(wf_transport *t, int linger_ms);

/* zeromq_listen.c: the transport's tend. */
bool wf_zmq_tend_listener(wf_transport *t, int64_t now_ns);

/* zeromq_message.c: the transport's send and receive. */
wf_status wf_zmq_send(wf_transport *t, const wf_route *to, const wf_msg *m, wf_err *err);
wf_msg *wf_zmq_receive(wf_transport *t, wf_msg_pool *pool, wf_route *from);

#endif
