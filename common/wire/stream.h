/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/stream.h - TCP connections of weft's own for pulls and pushes, in front of ZeroMQ.
 *
 * ZeroMQ has a thread of its own for its connections, so that a message wakes two threads more than
 * it must, and a frame is received into memory that is made for it. A connection of the thread that
 * uses it does neither. ZeroMQ still finds the peer, and carries what comes before such a
 * connection is made, after it has ended, and all that is no pull or push.
 *
 *   1. The first message of a kind that may have payload asks the other side for its port.
 *   2. The listener opens a port that the system chooses, at the interface where it listens, and
 *      answers with that port and a token.
 *   3. The dialler connects to it and says the token.
 *
 * Where a firewall or the limit on open files keeps that from happening, nothing else changes. A
 * message that goes one way may overtake one that went the other: link.h puts them in order.
 */
#ifndef WF_WIRE_STREAM_H
#define WF_WIRE_STREAM_H

#include "common/wire/transport.h"

/* Put in front of *far, a transport of ZeroMQ's over TCP: takes it, and *out is the caller's. Where
 * that cannot be, *out is *far itself. `address` is for the log. */
void wf_stream_listen(const char *address, wf_transport **far, wf_transport **out);
void wf_stream_dial(const char *address, wf_transport **far, wf_transport **out);

#endif
