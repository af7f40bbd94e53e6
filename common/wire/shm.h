/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/shm.h - shared memory between processes of one host, in front of another transport.
 *
 * A task that listens at an address also listens at an abstract unix socket whose name says that
 * address, the user, and for ipc:// the file. Who dials the address tries that name first. Both
 * sides take only processes of the same user. Until there is such a connection, and after it has
 * ended, messages go by the other transport; so nobody has to know whether a peer is on this host,
 * and nothing is configured. Where the system refuses memory or a socket, there is the other one.
 *
 * While a connection is being made nothing is sent at all: what is sent by one way and what follows
 * by the other would overtake each other.
 */
#ifndef WF_WIRE_SHM_H
#define WF_WIRE_SHM_H

#include "common/wire/transport.h"

/* Put in front of *far, which listens at the address or dials it: takes it, and *out is the
 * caller's. Where that cannot be, *out is *far itself. */
void wf_shm_listen(const char *address, wf_transport **far, wf_transport **out);
void wf_shm_dial(const char *address, wf_transport **far, wf_transport **out);

#endif
