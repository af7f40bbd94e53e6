/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/socket.h - transports of the simulator, as common/wire/transport.h asks for them.
 *
 * A dialled socket has one connection at a time, which keeps order and loses nothing until it
 * breaks. What is in it then is lost, and the socket connects again after a while, whatever the
 * process does. A connection may be half-open: one side knows of its end, the other sends into
 * nothing until it has received nothing for SILENT_MS. A route names a connection, so routes of an
 * older one are dead.
 *
 * In histories of packets (wf_sim_spec.packets) there are no connections: packets are lost,
 * repeated and late one by one, as the transport's contract allows.
 */
#ifndef WF_TESTS_SIM_SOCKET_H
#define WF_TESTS_SIM_SOCKET_H

#include "common/wire/transport.h"
#include <stdbool.h>
#include <stdint.h>

struct wf_sim;
struct process;

enum { SILENT_MS = 1500 };

typedef struct wf_socket wf_socket;

/* One direction of a connection: to the listener, or to the dialler. */
enum { TO_LISTENER = 0, TO_DIALLER = 1, N_WAYS };

typedef struct wf_connection {
    uint32_t id;             /* its place in wf_sim.connections */
    wf_socket *dialler;      /* NULL: closed, or connected anew since */
    wf_socket *listener;     /* NULL: closed, or it knows that the connection has ended */
    uint32_t from, to;       /* processes: of the dialler, and of the listener */
    uint64_t life;           /* of the listener's process */
    bool passes;             /* false: it leads to nothing, in both directions */
    int64_t last_ns[N_WAYS]; /* the arrival of the newest packet */
    int64_t free_ns[N_WAYS]; /* when its last byte has left (bandwidth) */
} wf_connection;

typedef struct wf_packet {
    uint32_t connection;
    int way;
    wf_msg *msg;
} wf_packet;

/* The process's listener; it must have none. */
wf_transport *wf_socket_listen(struct process *p);
/* A socket of process p that dials another process. */
wf_transport *wf_socket_dial(struct process *p, uint32_t to);

/* A packet has come to the end of its way. Takes its message. */
void wf_socket_arrive(struct wf_sim *s, wf_packet *packet);
/* The time to connect has come for the socket of this number. */
void wf_socket_connect(struct wf_sim *s, uint32_t number);
/* The end of a connection reaches its dialler. */
void wf_socket_lost(struct wf_sim *s, uint32_t connection);
/* Breaks the connections between two processes. `half`: only one side knows; `side` (0 or 1): which
 * one, TO_LISTENER for the listener. */
void wf_socket_break(struct wf_sim *s, uint32_t a, uint32_t b, bool half, int side);
/* Frees connections, sockets' lists and messages; all sockets must be closed. */
void wf_socket_end(struct wf_sim *s);

#endif
