/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/zeromq.c - one frame for header and control bytes, one for each payload frame. */
#include "common/wire/zeromq.h"
#include "common/base/clock.h"
#include "common/wire/grammar.h"
#include "common/wire/owner.h"

#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

enum {
    FRAME_LIMIT =
        (256 << 20) + (64 << 10), /* the largest control message, or a slice, and a margin */
    SOCKET_BUFFER = 4 << 20,      /* a slice goes to the kernel in one call */
    HIGH_WATER = 1024,            /* messages; bytes are bounded by the links' credit */
    KEEP_BLOCKS_BELOW = 32 << 20  /* the largest that mallopt lets malloc keep */
};

struct wf_zmq {
    void *context;
};

typedef struct zmq_transport {
    wf_transport base;
    void *socket;
    bool router;
} zmq_transport;

wf_status wf_zmq_new(wf_zmq **out, wf_err *err)
{
    wf_zmq *z = calloc(1, sizeof *z);

    if (!z)
        return wf_fail_nomem(err, sizeof *z);
    mallopt(M_MMAP_THRESHOLD, KEEP_BLOCKS_BELOW);
    mallopt(M_TRIM_THRESHOLD, KEEP_BLOCKS_BELOW);
    z->context = zmq_ctx_new();
    if (!z->context) {
        free(z);
        return wf_fail_errno(err, errno, NULL, "cannot start ZeroMQ");
    }
    *out = z;
    return WF_OK;
}

void wf_zmq_free(wf_zmq **z)
{
    if (!*z)
        return;
    while (zmq_ctx_term((*z)->context) != 0 && errno == EINTR)
        continue;
    free(*z);
    *z = NULL;
}

static int set_int(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof value);
}

static int set_options(void *socket)
{
    int64_t frame_limit = FRAME_LIMIT;
    int failed = 0;

    failed |= set_int(socket, ZMQ_LINGER, 0);
    failed |= set_int(socket, ZMQ_SNDHWM, HIGH_WATER);
    failed |= set_int(socket, ZMQ_RCVHWM, HIGH_WATER);
    failed |= zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &frame_limit, sizeof frame_limit);
    failed |= set_int(socket, ZMQ_HANDSHAKE_IVL, 3000);
    failed |= set_int(socket, ZMQ_HEARTBEAT_IVL, 1000);
    failed |= set_int(socket, ZMQ_HEARTBEAT_TIMEOUT, 5000);
    failed |= set_int(socket, ZMQ_HEARTBEAT_TTL, 5000);
    failed |= set_int(socket, ZMQ_TCP_KEEPALIVE, 1);
    failed |= set_int(socket, ZMQ_TCP_KEEPALIVE_IDLE, 30);
    failed |= set_int(socket, ZMQ_TCP_MAXRT, 10000);
    failed |= set_int(socket, ZMQ_BACKLOG, 512);
    failed |= set_int(socket, ZMQ_SNDBUF, SOCKET_BUFFER);
    failed |= set_int(socket, ZMQ_RCVBUF, SOCKET_BUFFER);
    return failed;
}

static bool zmq_ready(wf_transport *t)
{
    int events = 0;
    size_t size = sizeof events;

    zmq_getsockopt(((zmq_transport *)t)->socket, ZMQ_EVENTS, &events, &size);
    return events & ZMQ_POLLIN;
}

static void zmq_close_transport(wf_transport *t, int linger_ms)
{
    zmq_transport *z = (zmq_transport *)t;

    set_int(z->socket, ZMQ_LINGER, linger_ms);
    zmq_close(z->socket);
    free(z);
}

static void release_frame(void *data, void *hint)
{
    wf_buf *buf = hint;

    (void)data;
    wf_buf_unref(&buf);
}

static wf_status send_part(void *socket, zmq_msg_t *part, bool more, wf_err *err)
{
    int error;

    if (zmq_msg_send(part, socket, ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0)) >= 0)
        return WF_OK;
    error = errno;
    zmq_msg_close(part);
    return wf_fail_errno(err, error, NULL, "cannot send");
}

static wf_status send_bytes(void *socket, const void *data, size_t n, bool more, wf_err *err)
{
    zmq_msg_t part;

    if (zmq_msg_init_size(&part, n) != 0)
        return wf_fail_nomem(err, n);
    memcpy(zmq_msg_data(&part), data, n);
    return send_part(socket, &part, more, err);
}

static wf_status send_head(void *socket, const wf_msg *m, wf_err *err)
{
    zmq_msg_t part;
    uint8_t *to;

    if (zmq_msg_init_size(&part, WF_HEADER_BYTES + m->head.control_bytes) != 0)
        return wf_fail_nomem(err, m->head.control_bytes);
    to = zmq_msg_data(&part);
    if (m->head.control_bytes)
        memcpy(to + WF_HEADER_BYTES, m->control, m->head.control_bytes);
    wf_header_encode(&m->head, to + WF_HEADER_BYTES, to);
    return send_part(socket, &part, m->n_frames > 0, err);
}

/* After a first part that went, ZeroMQ takes the others of the same message without fail. */
static wf_status zmq_send_message(wf_transport *t, const wf_route *to, const wf_msg *m, wf_err *err)
{
    zmq_transport *z = (zmq_transport *)t;

    if (z->router)
        WF_TRY(send_bytes(z->socket, to->bytes, to->size, true, err));
    WF_TRY(send_head(z->socket, m, err));
    for (uint32_t i = 0; i < m->n_frames; i++) {
        const wf_frame *f = &m->frames[i];
        wf_buf *held = wf_buf_ref(f->buf);
        zmq_msg_t part;

        if (zmq_msg_init_data(&part, (void *)f->data, f->bytes, release_frame, held) != 0) {
            wf_buf_unref(&held);
            return wf_fail_nomem(err, f->bytes);
        }
        WF_TRY(send_part(z->socket, &part, i + 1 < m->n_frames, err));
    }
    return WF_OK;
}

static void release_part(void *data, void *hint)
{
    zmq_msg_t *part = hint;

    (void)data;
    zmq_msg_close(part);
    free(part);
}

/* A buffer that holds a received part, with its bytes where they are. */
static wf_buf *hold_part(zmq_msg_t *part)
{
    zmq_msg_t *held = malloc(sizeof *held);
    wf_buf *buf;

    if (!held)
        return NULL;
    zmq_msg_init(held);
    zmq_msg_move(held, part);
    buf = wf_buf_wrap(zmq_msg_data(held), zmq_msg_size(held), release_part, held);
    if (!buf)
        release_part(NULL, held);
    return buf;
}

static wf_buf *copy_part(zmq_msg_t *part)
{
    wf_buf *buf = wf_buf_new(zmq_msg_size(part));

    if (buf)
        memcpy(buf->data, zmq_msg_data(part), zmq_msg_size(part));
    return buf;
}

/* Makes a frame of the message out of a received part. ZeroMQ leaves what fits into its receive
 * buffer (8 KiB) at any address there; numbers are read in place, so such a part is copied. */
static bool keep_part(wf_msg *m, zmq_msg_t *part)
{
    bool aligned = (uintptr_t)zmq_msg_data(part) % sizeof(double) == 0;
    wf_buf *buf = aligned ? hold_part(part) : copy_part(part);
    bool kept;

    if (!buf)
        return false;
    kept = wf_msg_add_frame(m, buf, buf->data, buf->bytes, NULL) == WF_OK;
    wf_buf_unref(&buf);
    return kept;
}

/* Reads header and control bytes of the first part into a new message; NULL when they are bad. */
static wf_msg *decode_head(wf_msg_pool *pool, zmq_msg_t *part)
{
    const uint8_t *data = zmq_msg_data(part);
    const wf_kind_row *row;
    wf_header head;
    wf_msg *m = NULL;
    uint8_t *control;

    if (wf_header_decode(data, zmq_msg_size(part), &head, NULL) != WF_OK)
        return NULL;
    row = wf_kind_find(head.kind);
    if (!row || head.control_bytes > row->control_limit)
        return NULL;
    if (wf_msg_new(pool, head.kind, &m, NULL) != WF_OK)
        return NULL;
    control = wf_msg_control(m, head.control_bytes);
    if (!control && head.control_bytes) {
        wf_msg_free(pool, &m);
        return NULL;
    }
    m->head = head;
    if (head.control_bytes)
        memcpy(control, data + WF_HEADER_BYTES, head.control_bytes);
    return m;
}

/* Takes part `index` of an arriving message; *m becomes NULL for good when something is wrong. */
static void take_part(wf_msg_pool *pool, uint32_t index, zmq_msg_t *part, wf_msg **m)
{
    if (index == 0)
        *m = decode_head(pool, part);
    else if (*m && (index > wf_kind_find((*m)->head.kind)->frames_limit || !keep_part(*m, part)))
        wf_msg_free(pool, m);
}

/* One whole message off the socket. False when there is none; *m is NULL for a bad one. */
static bool receive_one(zmq_transport *z, wf_msg_pool *pool, wf_route *from, wf_msg **m)
{
    int routed = z->router ? 1 : 0, index = -routed;
    bool more = true, fits = true;

    for (*m = NULL; more; index++) {
        zmq_msg_t part;

        zmq_msg_init(&part);
        if (zmq_msg_recv(&part, z->socket, ZMQ_DONTWAIT) < 0) {
            zmq_msg_close(&part);
            return index > -routed;
        }
        more = zmq_msg_more(&part);
        if (index < 0) {
            fits = zmq_msg_size(&part) <= sizeof from->bytes;
            from->size = fits ? (uint8_t)zmq_msg_size(&part) : 0;
            memcpy(from->bytes, zmq_msg_data(&part), from->size);
        } else if (fits) {
            take_part(pool, (uint32_t)index, &part, m);
        }
        zmq_msg_close(&part);
    }
    return true;
}

static wf_msg *zmq_receive(wf_transport *t, wf_msg_pool *pool, wf_route *from)
{
    zmq_transport *z = (zmq_transport *)t;
    wf_msg *m;

    *from = (wf_route){0};
    while (receive_one(z, pool, from, &m)) {
        if (m)
            return m;
        t->bad_messages++;
    }
    return NULL;
}

static const wf_transport_ops zmq_ops = {
    .send = zmq_send_message,
    .receive = zmq_receive,
    .ready = zmq_ready,
    .close = zmq_close_transport,
};

static wf_status open_socket(wf_zmq *z, int type, zmq_transport **out, wf_err *err)
{
    zmq_transport *t = calloc(1, sizeof *t);

    if (!t)
        return wf_fail_nomem(err, sizeof *t);
    t->base.ops = &zmq_ops;
    t->router = type == ZMQ_ROUTER;
    t->socket = zmq_socket(z->context, type);
    t->base.poll_socket = t->socket;
    if (!t->socket) {
        free(t);
        return wf_fail_errno(err, errno, "raise the limit on open files: ulimit -n 65536",
                             "cannot make a socket");
    }
    if (set_options(t->socket) != 0) {
        zmq_close_transport(&t->base, 0);
        return wf_fail(err, WF_IO, "weft needs ZeroMQ 4.3.3 or later",
                       "this ZeroMQ does not know an option that weft sets");
    }
    *out = t;
    return WF_OK;
}

static wf_status bind_failed(const char *address, int error, wf_err *err)
{
    char owner[128];

    if (error == EADDRINUSE)
        return wf_fail(err, WF_EXISTS, "end that process, or choose another port in cluster.yaml",
                       "the address %s is in use%s%s", address,
                       wf_port_owner(address, owner, sizeof owner) ? " by " : "", owner);
    return wf_fail(err, WF_INVALID, "write tcp://HOST:PORT or ipc://PATH",
                   "cannot listen at %s: %s", address, zmq_strerror(error));
}

wf_status wf_zmq_listen(wf_zmq *z, const char *address, wf_transport **out, wf_err *err)
{
    zmq_transport *t = NULL;

    WF_TRY(open_socket(z, ZMQ_ROUTER, &t, err));
    set_int(t->socket, ZMQ_ROUTER_MANDATORY, 1);
    if (zmq_bind(t->socket, address) != 0) {
        int error = errno;

        zmq_close_transport(&t->base, 0);
        return bind_failed(address, error, err);
    }
    *out = &t->base;
    return WF_OK;
}

wf_status wf_zmq_dial(wf_zmq *z, const char *address, wf_task self, uint64_t incarnation,
                      uint8_t channel, wf_transport **out, wf_err *err)
{
    uint8_t name[13] = {(uint8_t)(self.role | channel << 4)};
    zmq_transport *t = NULL;

    wf_put_u32(name + 1, self.index);
    wf_put_u64(name + 5, incarnation);
    WF_TRY(open_socket(z, ZMQ_DEALER, &t, err));
    set_int(t->socket, ZMQ_IMMEDIATE, 1);
    set_int(t->socket, ZMQ_RECONNECT_IVL, 50);
    set_int(t->socket, ZMQ_RECONNECT_IVL_MAX, 1000);
    set_int(t->socket, ZMQ_CONNECT_TIMEOUT, 3000);
    if (zmq_setsockopt(t->socket, ZMQ_ROUTING_ID, name, sizeof name) != 0 ||
        zmq_connect(t->socket, address) != 0) {
        int error = errno;

        zmq_close_transport(&t->base, 0);
        return wf_fail(err, WF_INVALID, "write tcp://HOST:PORT or ipc://PATH", "cannot dial %s: %s",
                       address, zmq_strerror(error));
    }
    *out = &t->base;
    return WF_OK;
}

static bool any_ready(wf_transport *const t[], size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (zmq_ready(t[i]))
            return true;
    return false;
}

void wf_zmq_wait(wf_transport *const t[], size_t n, int fd, int64_t timeout_ms, int spin_us)
{
    enum { MOST = 64 };
    zmq_pollitem_t items[MOST + 1];
    int64_t end_ns = wf_now_ns() + (int64_t)spin_us * 1000;
    int used = 0;

    if (timeout_ms <= 0)
        spin_us = 0;
    while (spin_us > 0 && wf_now_ns() < end_ns) {
        if (any_ready(t, n))
            return;
        sched_yield();
    }
    for (size_t i = 0; i < n && i < MOST; i++)
        items[used++] = (zmq_pollitem_t){.socket = t[i]->poll_socket, .events = ZMQ_POLLIN};
    if (fd >= 0)
        items[used++] = (zmq_pollitem_t){.fd = fd, .events = ZMQ_POLLIN};
    zmq_poll(items, used, timeout_ms);
}
