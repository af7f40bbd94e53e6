/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/stream.c */
#include "common/wire/stream.h"
#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/wire/stream_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Between two looks at the far transport, each of which is a system call, while there are
 * connections. Before a sleep it is always looked at. */
static const int64_t FAR_NS = 20000;

static const size_t KEEP_BYTES = (size_t)128 << 20; /* of buffers that nobody uses */

/* ---- routes: one byte shorter than those of shm.c, which no route of ZeroMQ's is ---- */

enum { ROUTE_BYTES = 30 };

static wf_route route_of(const wf_stream_conn *c)
{
    wf_route r = {.size = ROUTE_BYTES};

    memcpy(r.bytes, &c->number, sizeof c->number);
    return r;
}

static bool is_near(const wf_route *r)
{
    return r->size == ROUTE_BYTES;
}

static stream_slot *slot_of(const stream_transport *s, const wf_route *to)
{
    if (!s->listens)
        return s->n && s->slots[0].c->state == WF_STREAM_UP ? &s->slots[0] : NULL;
    for (size_t i = 0; is_near(to) && i < s->n; i++)
        if (memcmp(to->bytes, &s->slots[i].c->number, sizeof s->slots[i].c->number) == 0)
            return &s->slots[i];
    return NULL;
}

/* ---- the transport ---- */

static wf_status stream_send(wf_transport *t, const wf_route *to, const wf_msg *m, wf_err *err)
{
    stream_transport *s = (stream_transport *)t;
    stream_slot *slot = slot_of(s, to);
    wf_status rc;

    if (!slot && s->listens && is_near(to))
        return wf_fail(err, WF_NOTFOUND, NULL, "the connection is over");
    if (!slot) {
        wf_stream_want(s, m->head.kind);
        return s->far->ops->send(s->far, to, m, err);
    }
    rc = wf_stream_conn_send(slot->c, m, err);
    wf_stream_watch_writes(s, slot);
    return rc;
}

static wf_msg *receive_far(stream_transport *s, wf_msg_pool *pool, wf_route *from)
{
    wf_msg *m;

    do
        m = s->far->ops->receive(s->far, pool, from);
    while (m && wf_stream_take_note(s, pool, from, &m));
    if (m && is_near(from)) { /* none of weft's names itself */
        wf_msg_free(pool, &m);
        s->bad++;
    }
    return m;
}

static bool is_far_due(stream_transport *s)
{
    int64_t now_ns;

    if (s->n == 0)
        return true;
    now_ns = wf_now_ns();
    if (now_ns < s->far_at_ns)
        return false;
    s->far_at_ns = now_ns + FAR_NS;
    return true;
}

/* Each connection in turn, and the far transport as one more. */
static wf_msg *stream_receive(wf_transport *t, wf_msg_pool *pool, wf_route *from)
{
    stream_transport *s = (stream_transport *)t;
    wf_msg *m = NULL;

    if (s->n > 0 || s->door >= 0)
        wf_stream_look(s);
    for (size_t k = 0, n = s->n + 1; !m && k < n; k++) {
        size_t at = s->turn++ % n;

        if (at + 1 == n) {
            m = is_far_due(s) ? receive_far(s, pool, from) : NULL;
            if (m)
                s->far_at_ns = 0; /* there may be more */
        } else {
            m = wf_stream_conn_receive(s->slots[at].c, pool, &s->bad);
            if (m)
                *from = s->listens ? route_of(s->slots[at].c) : (wf_route){0};
        }
    }
    t->bad_messages = s->bad + s->far->bad_messages;
    return m;
}

static bool stream_ready(wf_transport *t)
{
    stream_transport *s = (stream_transport *)t;
    struct epoll_event ev;

    for (size_t i = 0; i < s->n; i++)
        if (s->slots[i].c->in_to > s->slots[i].c->in_from)
            return true;
    if (s->n > 0 && epoll_wait(t->fd, &ev, 1, 0) > 0 && ev.data.ptr)
        return true;
    if (!is_far_due(s) || !s->far->ops->ready(s->far))
        return false;
    s->far_at_ns = 0;
    return true;
}

static bool stream_arm(wf_transport *t)
{
    stream_transport *s = (stream_transport *)t;
    bool something = s->far->ops->arm(s->far);

    s->far_at_ns = 0;
    for (size_t i = 0; i < s->n; i++)
        something |= s->slots[i].c->in_to > s->slots[i].c->in_from;
    return something;
}

static wf_buf *stream_buf(wf_transport *t, const wf_route *to, size_t bytes, bool several)
{
    (void)to, (void)several;
    return wf_buf_pool_take(((stream_transport *)t)->pool, bytes);
}

static bool stream_tend(wf_transport *t, int64_t now_ns)
{
    stream_transport *s = (stream_transport *)t;
    bool fresh = s->far->ops->tend && s->far->ops->tend(s->far, now_ns);

    wf_stream_look(s);
    wf_stream_end_late(s, now_ns, fresh);
    fresh |= s->fresh;
    s->fresh = false;
    return fresh;
}

static void stream_close(wf_transport *t, int linger_ms)
{
    stream_transport *s = (stream_transport *)t;
    wf_msg_pool pool = {0};

    for (size_t i = 0; i < s->n; i++)
        wf_stream_conn_free(&s->slots[i].c, &pool);
    wf_msg_pool_close(&pool);
    if (s->door >= 0)
        close(s->door);
    close(s->base.fd);
    s->far->ops->close(s->far, linger_ms);
    wf_buf_pool_close(&s->pool);
    free(s->slots);
    free(s);
}

static const wf_transport_ops stream_ops = {
    .send = stream_send,
    .receive = stream_receive,
    .ready = stream_ready,
    .arm = stream_arm,
    .buf = stream_buf,
    .tend = stream_tend,
    .close = stream_close,
};

/* A transport in front of *far, or NULL. */
static stream_transport *new_transport(const char *address, wf_transport **far)
{
    stream_transport *s = calloc(1, sizeof *s);
    struct epoll_event ev = {.events = EPOLLIN};

    if (!s)
        return NULL;
    *s = (stream_transport){.base = {.ops = &stream_ops, .fd = epoll_create1(EPOLL_CLOEXEC)},
                            .far = *far,
                            .door = -1,
                            .pool = wf_buf_pool_new(KEEP_BYTES)};
    snprintf(s->address, sizeof s->address, "%s", address);
    if (s->base.fd < 0 || !s->pool || epoll_ctl(s->base.fd, EPOLL_CTL_ADD, (*far)->fd, &ev) != 0) {
        if (s->base.fd >= 0)
            close(s->base.fd);
        wf_buf_pool_close(&s->pool);
        free(s);
        return NULL;
    }
    *far = NULL;
    return s;
}

static void put_in_front(const char *address, bool listens, wf_transport **far, wf_transport **out)
{
    stream_transport *s = new_transport(address, far);

    if (!s) {
        *out = *far;
        *far = NULL;
        return;
    }
    s->listens = listens;
    for (size_t i = 0; listens && i < WF_STREAM_TOKEN; i += sizeof(uint64_t)) {
        uint64_t random = wf_random_id();

        memcpy(s->token + i, &random, sizeof random);
    }
    *out = &s->base;
}

void wf_stream_listen(const char *address, wf_transport **far, wf_transport **out)
{
    put_in_front(address, true, far, out);
}

void wf_stream_dial(const char *address, wf_transport **far, wf_transport **out)
{
    put_in_front(address, false, far, out);
}
