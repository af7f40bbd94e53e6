/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/stream_conn.c - how a connection begins, ends and sends; stream_receive.c receives.
 */
#include "common/wire/stream_conn.h"
#include "common/base/size.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define STREAM_MAGIC 0x53464557u /* "WEFS" */

enum { STREAM_VERSION = 1, HELLO = 8, GREETING = HELLO + WF_STREAM_TOKEN };

/* Bytes that wait for the kernel: above what a link has in flight, sent twice. */
static const size_t MOST_REST = (size_t)256 << 20;

wf_stream_conn *wf_stream_conn_new(int fd, bool accepts, const uint8_t token[WF_STREAM_TOKEN],
                                   wf_buf_pool *pool, int64_t now_ns)
{
    wf_stream_conn *c = malloc(sizeof *c);

    if (!c) {
        close(fd);
        return NULL;
    }
    memset(c, 0, offsetof(wf_stream_conn, in));
    c->fd = fd;
    c->state = accepts ? WF_STREAM_GREETED : WF_STREAM_CONNECTING;
    c->accepts = accepts;
    memcpy(c->token, token, sizeof c->token);
    c->since_ns = now_ns;
    c->pool = pool;
    c->rest_end = &c->rest;
    return c;
}

static void drop_rest(wf_stream_conn *c)
{
    while (c->rest) {
        wf_stream_rest *r = c->rest;

        c->rest = r->next;
        for (uint32_t i = 0; i < r->n_frames; i++)
            wf_buf_unref(&r->frames[i].buf);
        free(r);
    }
    c->rest_end = &c->rest;
    c->rest_bytes = 0;
}

void wf_stream_conn_free(wf_stream_conn **c, wf_msg_pool *pool)
{
    wf_stream_conn *it = *c;

    *c = NULL;
    if (!it)
        return;
    drop_rest(it);
    wf_msg_free(pool, &it->m);
    wf_buf_unref(&it->frame);
    free(it->long_head);
    close(it->fd);
    free(it);
}

void wf_stream_conn_end(wf_stream_conn *c, const char *why)
{
    if (c->state == WF_STREAM_OVER)
        return;
    c->state = WF_STREAM_OVER;
    c->why = why;
    drop_rest(c);
    (void)shutdown(c->fd, SHUT_RDWR);
}

/* ---- its beginning ---- */

/* Before a connection is up so few bytes are sent that the kernel has room for them. */
static void say(wf_stream_conn *c, const uint8_t *bytes, size_t n)
{
    if (send(c->fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)n)
        wf_stream_conn_end(c, "it cannot be written to");
}

static void connected(wf_stream_conn *c)
{
    uint8_t greeting[GREETING];
    int error = 0;
    socklen_t size = sizeof error;
    struct sockaddr_storage at;
    socklen_t at_size = sizeof at;

    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
        wf_stream_conn_end(c, "nobody accepts it");
        return;
    }
    if (getpeername(c->fd, (struct sockaddr *)&at, &at_size) != 0)
        return; /* not yet */
    wf_put_u32(greeting, STREAM_MAGIC);
    wf_put_u32(greeting + 4, STREAM_VERSION);
    memcpy(greeting + HELLO, c->token, sizeof c->token);
    c->state = WF_STREAM_GREETED;
    say(c, greeting, sizeof greeting);
}

static bool differs(const uint8_t *a, const uint8_t *b, size_t n)
{
    uint8_t bits = 0;

    for (size_t i = 0; i < n; i++) /* takes the same time wherever they differ */
        bits |= a[i] ^ b[i];
    return bits != 0;
}

static void greeted(wf_stream_conn *c)
{
    size_t needed = c->accepts ? GREETING : HELLO;
    uint8_t answer[HELLO];
    ssize_t n = recv(c->fd, c->in + c->in_to, needed - c->in_to, MSG_DONTWAIT);

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        wf_stream_conn_end(c, "it was ended before the greeting");
        return;
    }
    c->in_to += n > 0 ? (size_t)n : 0;
    if (c->in_to < needed)
        return;
    c->in_to = 0;
    if (wf_get_u32(c->in) != STREAM_MAGIC || wf_get_u32(c->in + 4) != STREAM_VERSION ||
        (c->accepts && differs(c->in + HELLO, c->token, sizeof c->token))) {
        wf_stream_conn_end(c, "the greeting is wrong");
        return;
    }
    c->state = WF_STREAM_UP;
    c->was_up = true;
    if (!c->accepts)
        return;
    wf_put_u32(answer, STREAM_MAGIC);
    wf_put_u32(answer + 4, STREAM_VERSION);
    say(c, answer, sizeof answer);
}

/* ---- sending ---- */

/* Pieces from byte `skip` of what is sent on. */
static size_t pieces_from(struct iovec iov[], size_t n, size_t skip)
{
    size_t used = 0;

    for (size_t i = 0; i < n; i++) {
        if (skip >= iov[i].iov_len) {
            skip -= iov[i].iov_len;
            continue;
        }
        iov[used++] = (struct iovec){(uint8_t *)iov[i].iov_base + skip, iov[i].iov_len - skip};
        skip = 0;
    }
    return used;
}

/* How many bytes the kernel took; the connection is over when that fails. */
static size_t give(wf_stream_conn *c, struct iovec iov[], size_t n)
{
    struct msghdr h = {.msg_iov = iov, .msg_iovlen = n};
    ssize_t taken;

    do
        taken = n ? sendmsg(c->fd, &h, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
    while (taken < 0 && errno == EINTR);
    if (taken >= 0)
        return (size_t)taken;
    if (errno != EAGAIN && errno != ENOBUFS)
        wf_stream_conn_end(c, "it cannot be written to");
    return 0;
}

static void add_frames(struct iovec iov[], const wf_frame frames[], uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        iov[i] = (struct iovec){(void *)(uintptr_t)frames[i].data, frames[i].bytes};
}

static void flush(wf_stream_conn *c)
{
    while (c->state == WF_STREAM_UP && c->rest) {
        wf_stream_rest *r = c->rest;
        struct iovec iov[1 + WF_MAX_FRAMES] = {{r->head, r->head_bytes}};
        size_t total = r->head_bytes, taken;

        add_frames(iov + 1, r->frames, r->n_frames);
        for (uint32_t i = 0; i < r->n_frames; i++)
            total += r->frames[i].bytes;
        taken = give(c, iov, pieces_from(iov, 1 + r->n_frames, r->sent));
        if (c->state != WF_STREAM_UP)
            return;
        r->sent += taken;
        c->rest_bytes -= taken;
        if (r->sent < total)
            return;
        c->rest = r->next;
        if (!c->rest)
            c->rest_end = &c->rest;
        for (uint32_t i = 0; i < r->n_frames; i++)
            wf_buf_unref(&r->frames[i].buf);
        free(r);
    }
}

/* Keeps the message but for its first `sent` bytes. */
static wf_status keep(wf_stream_conn *c, const wf_msg *m, const uint8_t *head, size_t head_bytes,
                      size_t sent, wf_err *err)
{
    size_t control = m->head.control_bytes, bytes = head_bytes + control;
    wf_stream_rest *r = malloc(sizeof *r + bytes);

    if (!r)
        return wf_fail_nomem(err, sizeof *r + bytes);
    *r = (wf_stream_rest){.sent = sent, .head_bytes = bytes, .n_frames = m->n_frames};
    memcpy(r->head, head, head_bytes);
    if (control)
        memcpy(r->head + head_bytes, m->control, control);
    for (uint32_t i = 0; i < m->n_frames; i++)
        r->frames[i] =
            (wf_frame){wf_buf_ref(m->frames[i].buf), m->frames[i].data, m->frames[i].bytes};
    *c->rest_end = r;
    c->rest_end = &r->next;
    c->rest_bytes += bytes + m->payload_bytes - sent;
    return WF_OK;
}

wf_status wf_stream_conn_send(wf_stream_conn *c, const wf_msg *m, wf_err *err)
{
    uint8_t head[WF_STREAM_PREFIX + WF_HEADER_BYTES];
    size_t prefix = 8 + 4 * m->n_frames, head_bytes = prefix + WF_HEADER_BYTES;
    size_t total = head_bytes + m->head.control_bytes + m->payload_bytes, taken = 0;
    struct iovec iov[2 + WF_MAX_FRAMES] = {{head, head_bytes}, {m->control, m->head.control_bytes}};

    if (c->state != WF_STREAM_UP)
        return wf_fail(err, WF_NOTFOUND, NULL, "the connection is over");
    flush(c);
    if (c->rest && c->rest_bytes + total > MOST_REST)
        return wf_fail(err, WF_FULL, NULL, "the other side takes nothing for now");
    wf_put_u32(head, m->n_frames);
    wf_put_u32(head + 4, WF_HEADER_BYTES + m->head.control_bytes);
    for (uint32_t i = 0; i < m->n_frames; i++)
        wf_put_u32(head + 8 + 4 * i, (uint32_t)m->frames[i].bytes);
    wf_header_encode(&m->head, m->control, head + prefix);
    add_frames(iov + 2, m->frames, m->n_frames);
    if (!c->rest)
        taken = give(c, iov, pieces_from(iov, 2 + m->n_frames, 0));
    if (c->state != WF_STREAM_UP)
        return wf_fail(err, WF_NOTFOUND, NULL, "the connection is over");
    if (taken == total)
        return WF_OK;
    if (keep(c, m, head, head_bytes, taken, err) == WF_OK)
        return WF_OK;
    if (taken > 0) /* what follows would be read as its end */
        wf_stream_conn_end(c, "memory is short");
    return WF_NOMEM;
}

void wf_stream_conn_look(wf_stream_conn *c)
{
    if (c->state == WF_STREAM_CONNECTING)
        connected(c);
    if (c->state == WF_STREAM_GREETED)
        greeted(c);
    if (c->state == WF_STREAM_UP)
        flush(c);
}
