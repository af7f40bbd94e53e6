/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/stream_conn.h - one connection that carries messages as a stream of bytes.
 *
 *   dialler:  CONNECTING --connected, greets--> GREETED --greeted--> UP --end, or broken--> OVER
 *   acceptor: GREETED --a greeting with the token, answers it--> UP
 *
 * A greeting is u32 magic, u32 version, and the token (16 bytes) that the listener told the dialler
 * by another way; so nobody else gets in. The acceptor answers with its magic and version.
 *
 * A record is a message: u32 number of frames, u32 bytes of header and control bytes, u32 bytes of
 * each frame; then these. A frame's bytes are received where they stay. A record that cannot be
 * right ends the connection.
 *
 * What the kernel does not take at once waits here, with references to the frames.
 *
 * Threading: one thread owns a connection; received frames may be let go of on any, at any time.
 */
#ifndef WF_WIRE_STREAM_CONN_H
#define WF_WIRE_STREAM_CONN_H

#include "common/base/status.h"
#include "common/wire/buf_pool.h"
#include "common/wire/msg.h"
#include <stdbool.h>
#include <stdint.h>

enum { WF_STREAM_TOKEN = 16, WF_STREAM_IN = 1 << 16, WF_STREAM_PREFIX = 8 + 4 * WF_MAX_FRAMES };

typedef enum wf_stream_state {
    WF_STREAM_CONNECTING,
    WF_STREAM_GREETED,
    WF_STREAM_UP,
    WF_STREAM_OVER
} wf_stream_state;

/* What is left of a message that the kernel has not taken. */
typedef struct wf_stream_rest {
    size_t sent;       /* bytes of what follows */
    size_t head_bytes; /* prefix, header and control bytes */
    uint32_t n_frames;
    wf_frame frames[WF_MAX_FRAMES];
    struct wf_stream_rest *next;
    uint8_t head[];
} wf_stream_rest;

typedef struct wf_stream_conn {
    int fd;
    wf_stream_state state;
    const char *why; /* it is over; NULL: the other side has ended it */
    bool accepts, was_up;
    uint8_t token[WF_STREAM_TOKEN];
    uint64_t number; /* of the transport, for its routes */
    int64_t since_ns;
    wf_buf_pool *pool; /* the transport's */
    wf_stream_rest *rest, **rest_end;
    size_t rest_bytes;
    /* The record that arrives. */
    uint32_t n_sizes, at; /* 1 + frames, or 0 before its prefix; the part that arrives */
    uint32_t sizes[1 + WF_MAX_FRAMES];
    bool was_large; /* this record, or the last before its prefix, is more than fits into `in` */
    uint8_t *part;  /* where that part goes: into `long_head` or a frame; NULL: not begun */
    size_t filled;
    uint8_t *long_head; /* of more than fits into `in` */
    wf_buf *frame;      /* the one that arrives, or all of the record: */
    bool has_all;       /* that one, and */
    size_t place;       /* where the one that arrives begins, */
    size_t ahead;       /* and what has arrived of those behind it */
    wf_msg *m;
    size_t in_from, in_to; /* bytes of `in` that have arrived and are not used */
    uint8_t in[WF_STREAM_IN];
} wf_stream_conn;

/* A connection over a socket that does not block, which it takes, also on failure. One that dials
 * may still be connecting. The pool stays the caller's, for longer than the connection. NULL
 * without memory. */
wf_stream_conn *wf_stream_conn_new(int fd, bool accepts, const uint8_t token[WF_STREAM_TOKEN],
                                   wf_buf_pool *pool, int64_t now_ns);
/* Closes and frees it; NULL is fine. */
void wf_stream_conn_free(wf_stream_conn **c, wf_msg_pool *pool);

/* Goes on with what the socket allows: connects, greets, sends what waits. */
void wf_stream_conn_look(wf_stream_conn *c);
void wf_stream_conn_end(wf_stream_conn *c, const char *why);
/* Whether the socket's being writable is waited for. */
static inline bool wf_stream_conn_writes(const wf_stream_conn *c)
{
    return c->state == WF_STREAM_CONNECTING || c->rest;
}

/* Sends a message, or keeps what the kernel does not take. Errors: WF_FULL when too much waits;
 * WF_NOTFOUND when the connection is not up. */
WF_MUST_USE wf_status wf_stream_conn_send(wf_stream_conn *c, const wf_msg *m, wf_err *err);
/* The next message, or NULL when the socket has no more for now; counts in *bad a record that was
 * wrong. */
wf_msg *wf_stream_conn_receive(wf_stream_conn *c, wf_msg_pool *pool, uint64_t *bad);

#endif
