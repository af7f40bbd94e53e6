/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/transport.h - what carries messages: ZeroMQ between processes (zeromq.h), shared
 * memory between those of one host (shm.h), memory within one (mem.h), the bad network of the
 * simulator (tests/sim).
 *
 * A transport may lose, repeat and reorder messages; link.h makes up for that. A transport that
 * keeps the order of the messages that it does not lose, as a connection does, causes no needless
 * resends. It never blocks. Messages that it gives have a valid header and bounded frames; others
 * are counted and dropped inside.
 */
#ifndef WF_WIRE_TRANSPORT_H
#define WF_WIRE_TRANSPORT_H

#include "common/wire/msg.h"
#include <stdbool.h>
#include <stddef.h>

/* The sender or receiver of a message, as the transport names it; empty for the one peer of a
 * dialled transport. */
typedef struct wf_route {
    uint8_t size;
    uint8_t bytes[31];
} wf_route;

typedef struct wf_transport wf_transport;

typedef struct wf_transport_ops {
    /* Hands a message over; the transport takes references to what it needs. Errors: WF_FULL or
     * WF_NOTFOUND when it cannot go now: it counts as lost. */
    wf_status (*send)(wf_transport *t, const wf_route *to, const wf_msg *m, wf_err *err);
    /* The next message that arrived, which the caller owns then, or NULL. */
    wf_msg *(*receive)(wf_transport *t, wf_msg_pool *pool, wf_route *from);
    /* Whether receive may have something; cheap enough to spin on. */
    bool (*ready)(wf_transport *t);
    /* Before waiting: makes `fd` readable as soon as something arrives. True: receive may have
     * something already. */
    bool (*arm)(wf_transport *t);
    /* Memory that messages to a peer need no copy from, and if possible those to `several`, also
     * over other transports of its kind; with one reference; NULL when there is none. NULL instead
     * of the function: any memory is as good. */
    wf_buf *(*buf)(wf_transport *t, const wf_route *to, size_t bytes, bool several);
    /* Whether a peer reads so many bytes of that memory where they lie. NULL: none does. */
    bool (*lends)(wf_transport *t, const wf_route *to, size_t bytes);
    /* Maintains connections, some times a second: dials a silent one anew, or ends accepted ones
     * that bring no bytes. True when a dialled transport has a new connection since the last call.
     * NULL: nothing to do. */
    bool (*tend)(wf_transport *t, int64_t now_ns);
    /* Closes and frees it; sent messages may still leave for linger_ms. */
    void (*close)(wf_transport *t, int linger_ms);
} wf_transport_ops;

struct wf_transport {
    const wf_transport_ops *ops;
    int fd;                /* for poll(2), once armed; -1: looked at every millisecond */
    uint64_t bad_messages; /* dropped: no message of weft, or out of bounds */
};

#endif
