/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/stream_receive.c - a stream of bytes becomes messages. */
#include "common/base/size.h"
#include "common/wire/grammar.h"
#include "common/wire/stream_conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { KIND_AT = 6, CONTROL_BYTES_AT = 56 /* of a header */ };

static const size_t TOGETHER_MOST = (size_t)4 << 20, AFTER_LARGE = 4096,
                    FRAME_LIMIT = ((size_t)256 << 20) + (64 << 10); /* as zeromq.c's */

static size_t have(const wf_stream_conn *c)
{
    return c->in_to - c->in_from;
}

/* How much of the next record may come into `in`. Where the last was too large for it, the next is
 * likely to be as well: then its prefix and header suffice, and frames come straight to their
 * places. */
static size_t next_bytes(const wf_stream_conn *c)
{
    size_t room = sizeof c->in - c->in_to;

    return c->was_large && have(c) < AFTER_LARGE ? WF_MIN(room, AFTER_LARGE) : room;
}

static size_t room_of(uint32_t bytes)
{
    return wf_align_up(bytes, WF_BUF_ALIGN);
}

/* Where bytes of the record go that have not arrived: the rest of the part in hand, and the frames
 * behind it, if they have memory. */
static int list_missing(const wf_stream_conn *c, struct iovec iov[], size_t *bytes)
{
    size_t place = c->place;
    int n = 0;

    *bytes = 0;
    if (!c->part)
        return 0;
    iov[n++] = (struct iovec){c->part + c->filled, c->sizes[c->at] - c->filled};
    *bytes = iov[0].iov_len;
    for (uint32_t i = c->at; c->at > 0 && c->has_all && i + 1 < c->n_sizes; i++) {
        place += room_of(c->sizes[i]);
        iov[n++] = (struct iovec){(uint8_t *)c->frame->data + place, c->sizes[i + 1]};
        *bytes += c->sizes[i + 1];
    }
    return n;
}

/* Takes what has arrived off the socket: into the parts that are missing, and what is behind them
 * into `in`. False when there is nothing now. */
static bool fill(wf_stream_conn *c)
{
    struct iovec iov[WF_MAX_FRAMES + 2];
    size_t missing, n, here;
    int parts = list_missing(c, iov, &missing);
    struct msghdr h = {.msg_iov = iov, .msg_iovlen = (size_t)parts + 1};
    ssize_t got;

    if (c->in_from > 0) {
        memmove(c->in, c->in + c->in_from, have(c));
        c->in_to -= c->in_from;
        c->in_from = 0;
    }
    iov[parts] = (struct iovec){c->in + c->in_to, next_bytes(c)};
    do
        got = recvmsg(c->fd, &h, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN)
        return false;
    if (got <= 0) {
        wf_stream_conn_end(c, got == 0 ? NULL : "it cannot be read from");
        return false;
    }
    n = WF_MIN((size_t)got, missing);
    here = parts ? WF_MIN(n, iov[0].iov_len) : 0;
    c->filled += here;
    c->ahead = n - here;
    c->in_to += (size_t)got - n;
    return true;
}

/* Sizes and the kind of a record, of which prefix and header are here: whether they can be right.
 * Nothing is allocated before. */
static bool check(wf_stream_conn *c, const uint8_t *at, uint32_t n_frames)
{
    const uint8_t *header = at + 8 + 4 * n_frames;
    const wf_kind_row *row = wf_kind_find(wf_get_u16(header + KIND_AT));
    uint32_t head_bytes = wf_get_u32(at + 4), control = wf_get_u32(header + CONTROL_BYTES_AT);
    size_t all = head_bytes;

    if (!row || n_frames > row->frames_limit || control > row->control_limit ||
        head_bytes != WF_HEADER_BYTES + control)
        return false;
    c->sizes[0] = head_bytes;
    for (uint32_t i = 0; i < n_frames; i++) {
        c->sizes[1 + i] = wf_get_u32(at + 8 + 4 * i);
        if (c->sizes[1 + i] > FRAME_LIMIT)
            return false;
        all += c->sizes[1 + i];
    }
    c->was_large = all > sizeof c->in;
    return true;
}

typedef enum outcome { GOES_ON, NEEDS_BYTES, IS_WRONG } outcome;

static outcome begin_record(wf_stream_conn *c)
{
    const uint8_t *at = c->in + c->in_from;
    uint32_t n_frames;
    size_t prefix;

    if (have(c) < 8)
        return NEEDS_BYTES;
    n_frames = wf_get_u32(at);
    if (n_frames > WF_MAX_FRAMES)
        return IS_WRONG;
    prefix = 8 + 4 * (size_t)n_frames;
    if (have(c) < prefix + WF_HEADER_BYTES)
        return NEEDS_BYTES;
    if (!check(c, at, n_frames))
        return IS_WRONG;
    c->in_from += prefix;
    c->n_sizes = 1 + n_frames;
    c->at = 0;
    return GOES_ON;
}

/* Frames that lie in one buffer are used where they lie (worker/exchange/ps_values.c), and come in
 * one call. Of a long record each has its own, made when it begins to arrive. */
static bool begin_frame(wf_stream_conn *c)
{
    size_t all = 0;

    if (c->at > 1 && c->has_all) {
        c->place += room_of(c->sizes[c->at - 1]);
        c->filled = WF_MIN(c->ahead, (size_t)c->sizes[c->at]);
        c->ahead -= c->filled;
        return true;
    }
    for (uint32_t i = c->at; i < c->n_sizes; i++)
        all += room_of(c->sizes[i]);
    c->has_all = c->at == 1 && all <= TOGETHER_MOST;
    c->place = 0;
    c->frame = wf_buf_pool_take(c->pool, WF_MAX(c->has_all ? all : c->sizes[c->at], (size_t)1));
    return c->frame;
}

/* Where the part in hand goes; false without memory. */
static bool begin_part(wf_stream_conn *c)
{
    c->filled = 0;
    if (c->at == 0) {
        c->long_head = malloc(c->sizes[0]);
        c->part = c->long_head;
    } else {
        c->part = begin_frame(c) ? (uint8_t *)c->frame->data + c->place : NULL;
    }
    return c->part;
}

static outcome end_head(wf_stream_conn *c, wf_msg_pool *pool, const uint8_t *head)
{
    c->m = wf_msg_decode(pool, head, c->sizes[0]);
    free(c->long_head);
    c->long_head = NULL;
    c->part = NULL;
    c->at++;
    return c->m ? GOES_ON : IS_WRONG;
}

static outcome end_frame(wf_stream_conn *c)
{
    wf_status rc = wf_msg_add_frame(c->m, c->frame, c->part, c->sizes[c->at], NULL);

    if (!c->has_all || c->at + 1 == c->n_sizes)
        wf_buf_unref(&c->frame);
    c->part = NULL;
    c->at++;
    return rc == WF_OK ? GOES_ON : IS_WRONG;
}

static outcome take_part(wf_stream_conn *c, wf_msg_pool *pool)
{
    size_t n;

    if (c->at == 0 && c->sizes[0] <= sizeof c->in) { /* decoded where it lies */
        const uint8_t *head = c->in + c->in_from;

        if (have(c) < c->sizes[0])
            return NEEDS_BYTES;
        c->in_from += c->sizes[0];
        return end_head(c, pool, head);
    }
    if (!c->part && !begin_part(c))
        return IS_WRONG;
    n = WF_MIN(have(c), c->sizes[c->at] - c->filled);
    memcpy(c->part + c->filled, c->in + c->in_from, n);
    c->filled += n;
    c->in_from += n;
    if (c->filled < c->sizes[c->at])
        return NEEDS_BYTES;
    return c->at == 0 ? end_head(c, pool, c->long_head) : end_frame(c);
}

wf_msg *wf_stream_conn_receive(wf_stream_conn *c, wf_msg_pool *pool, uint64_t *bad)
{
    while (c->state == WF_STREAM_UP) {
        outcome o = c->n_sizes == 0 ? begin_record(c) : take_part(c, pool);

        if (o == IS_WRONG) {
            (*bad)++;
            wf_stream_conn_end(c, "a record is wrong, or memory is short");
        } else if (o == NEEDS_BYTES && !fill(c)) {
            return NULL;
        } else if (c->n_sizes > 0 && c->at == c->n_sizes) {
            wf_msg *m = c->m;

            c->m = NULL;
            c->n_sizes = 0;
            return m;
        }
    }
    return NULL;
}
