/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/zeromq.h - messages over ZeroMQ: ROUTER on the serving side, DEALER on the asking
 * side, tcp and ipc.
 *
 * A socket belongs to the thread that polls it. Options and their reasons: docs/wire.md, "Sockets".
 */
#ifndef WF_WIRE_ZEROMQ_H
#define WF_WIRE_ZEROMQ_H

#include "common/base/status.h"
#include "common/wire/transport.h"
#include <stdint.h>
#include <sys/socket.h>

typedef struct wf_zmq wf_zmq; /* a process's ZeroMQ context */

/* How many connections the process's limit on open files has room for, `wanted` at most. */
uint32_t wf_zmq_most(uint32_t wanted);
/* A context for so many connections at one time. Errors: WF_IO; WF_FULL when the process's limit on
 * open files is too low (wf_process_raise_files), with both numbers. */
WF_MUST_USE wf_status wf_zmq_new(uint32_t connections, wf_zmq **out, wf_err *err);
/* Ends the context once its transports are closed; NULL is fine. */
void wf_zmq_free(wf_zmq **z);

/* Listens at `address` (tcp://host:port or ipc://path). Ends connections that bring no byte for
 * 15 s. Errors: WF_EXISTS when the address is in use, naming the process if /proc shows it;
 * WF_INVALID. */
WF_MUST_USE wf_status wf_zmq_listen(wf_zmq *z, const char *address, wf_transport **out,
                                    wf_err *err);
/* Dials `address`, again and again until the transport is closed; returns at once. The socket has
 * no name of its own: a ROUTER refuses a second connection with a name that it believes to be in
 * use, as after a connection that is broken on one side only. A TCP connection without a sign of
 * life for 1.5 s (zeromq_dial.c) is dialled anew. Errors: WF_INVALID, WF_IO. */
WF_MUST_USE wf_status wf_zmq_dial(wf_zmq *z, const char *address, wf_transport **out, wf_err *err);

/* The numeric address that a listening transport is bound to, and the one that a dialled one is
 * connected to; false when there is none now, or it is no TCP. */
bool wf_zmq_bound(const wf_transport *t, struct sockaddr_storage *at);
bool wf_zmq_peer(const wf_transport *t, struct sockaddr_storage *at);

#endif
