/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/msg.h - a message: header, control bytes, payload frames that are never copied.
 *
 * A message belongs to one thread at a time. Payload frames hold a reference to counted storage, so
 * that the same gradient buffer can be in several messages, and in a resend of each.
 */
#ifndef WF_WIRE_MSG_H
#define WF_WIRE_MSG_H

#include "common/base/status.h"
#include "common/tensor/buf.h"
#include "common/wire/header.h"
#include <stddef.h>
#include <stdint.h>

enum { WF_MAX_FRAMES = 32 };

typedef struct wf_frame {
    wf_buf *buf; /* one reference of the message's own */
    const uint8_t *data;
    size_t bytes;
} wf_frame;

typedef struct wf_msg {
    wf_header head;
    uint8_t *control; /* [head.control_bytes] */
    size_t control_room;
    uint32_t n_frames;
    wf_frame frames[WF_MAX_FRAMES];
    size_t payload_bytes; /* sum of the frames */
    /* For link.c: the order in its send queue, and the list it is on. */
    uint64_t key, order;
    struct wf_msg *next;
} wf_msg;

/* Messages are kept for reuse, so that a training step allocates none. */
typedef struct wf_msg_pool {
    wf_msg *free;
} wf_msg_pool;

void wf_msg_pool_close(wf_msg_pool *pool);
/* An empty message of `kind` that the caller owns. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_msg_new(wf_msg_pool *pool, uint16_t kind, wf_msg **out, wf_err *err);
/* Gives *m back with its frames, and sets it to NULL; NULL is fine. */
void wf_msg_free(wf_msg_pool *pool, wf_msg **m);
/* Makes room for n control bytes, sets head.control_bytes, and returns where to write them; NULL
 * when there is no memory. */
uint8_t *wf_msg_control(wf_msg *m, size_t n);
/* Appends a payload frame of `bytes` at `data`, which lies in buf, and takes a reference of its
 * own. Errors: WF_FULL above WF_MAX_FRAMES. */
WF_MUST_USE wf_status wf_msg_add_frame(wf_msg *m, wf_buf *buf, const void *data, size_t bytes,
                                       wf_err *err);
/* Adds bytes of a buffer to one of the last two frames, if that ends where they begin, or else as a
 * frame. *frame: the number of it. Errors: WF_FULL above WF_MAX_FRAMES. */
WF_MUST_USE wf_status wf_msg_add_bytes(wf_msg *m, wf_buf *buf, const uint8_t *data, size_t bytes,
                                       uint32_t *frame, wf_err *err);
/* A message without frames out of the n bytes of its header and control bytes; NULL when they are
 * bad, or the kind is unknown or has fewer control bytes, or without memory. */
wf_msg *wf_msg_decode(wf_msg_pool *pool, const uint8_t *data, size_t n);
/* Header, control bytes and payload: what counts against a link's credit. */
size_t wf_msg_bytes(const wf_msg *m);
/* Another message with the same header, control bytes and frames (the payload is shared). */
WF_MUST_USE wf_status wf_msg_copy(wf_msg_pool *pool, const wf_msg *m, wf_msg **out, wf_err *err);

#endif
