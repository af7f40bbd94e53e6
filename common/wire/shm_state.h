/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/shm_state.h - what shm.c and shm_reach.c share; nobody else includes it. */
#ifndef WF_WIRE_SHM_STATE_H
#define WF_WIRE_SHM_STATE_H

#include "common/wire/shm_conn.h"
#include "common/wire/wires.h"

typedef struct shm_transport {
    wf_transport base; /* its fd is an epoll */
    wf_transport *far;
    bool listens;
    int door; /* where others connect; -1: nowhere */
    char address[WF_ADDRESSES_MAX];
    wf_shm_conn **conns; /* of one that dials: one at most */
    size_t n, room, turn;
    uint64_t numbers, bad;
    bool armed, fresh;
    int64_t try_at_ns, far_at_ns; /* to connect or open the door; to look at the far transport */
} shm_transport;

/* Has a descriptor make the transport's readable: `what` is a connection, the transport for its
 * door, NULL for the far transport. */
bool wf_shm_watch(const shm_transport *s, int fd, void *what);
/* Opens a socket at which others find who listens at the transport's address, if it is time to: a
 * while after it was closed, or could not be opened because another process has the name. */
void wf_shm_open_door(shm_transport *s, int64_t now_ns);
/* Tries to connect to whoever listens at the transport's address on this host. */
void wf_shm_connect(shm_transport *s, int64_t now_ns);
/* What has happened at the sockets, at all of them or at one. Only the first frees connections. */
void wf_shm_look(shm_transport *s);
void wf_shm_look_at(shm_transport *s, wf_shm_conn *c);
/* Gives up connections that are not made in time. */
void wf_shm_end_late(const shm_transport *s, int64_t now_ns);

#endif
