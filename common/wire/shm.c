/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/shm.c */
#include "common/wire/shm.h"
#include "common/base/clock.h"
#include "common/wire/shm_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Between two looks at the far transport, each of which is a system call, while there are
 * connections. Before a sleep it is always looked at. */
static const int64_t FAR_NS = 20000;

/* ---- routes: as long as can be, which no route of the far transport is ---- */

static wf_route route_of(const wf_shm_conn *c)
{
    wf_route r = {.size = sizeof r.bytes};

    memcpy(r.bytes, &c->number, sizeof c->number);
    return r;
}

static bool is_near(const wf_route *r)
{
    return r->size == sizeof r->bytes;
}

static wf_shm_conn *conn_of(const shm_transport *s, const wf_route *to)
{
    if (!s->listens)
        return s->n ? s->conns[0] : NULL;
    for (size_t i = 0; i < s->n; i++)
        if (memcmp(to->bytes, &s->conns[i]->number, sizeof s->conns[i]->number) == 0)
            return s->conns[i];
    return NULL;
}

/* ---- the transport ---- */

static wf_status shm_send(wf_transport *t, const wf_route *to, const wf_msg *m, wf_err *err)
{
    shm_transport *s = (shm_transport *)t;
    wf_shm_conn *c = !s->listens || is_near(to) ? conn_of(s, to) : NULL;

    if (c && c->state == WF_SHM_ASKED) { /* the answer may be there, or late */
        wf_shm_look_at(s, c);
        wf_shm_end_late(s, wf_now_ns());
    }
    if (c && c->state == WF_SHM_ASKED)
        return wf_fail(err, WF_FULL, NULL, "the connection is being made");
    if (c && (s->listens || c->state == WF_SHM_UP))
        return wf_shm_conn_send(c, m, err);
    if (s->listens && is_near(to))
        return wf_fail(err, WF_NOTFOUND, NULL, "the connection is over");
    return s->far->ops->send(s->far, to, m, err);
}

static wf_msg *receive_far(shm_transport *s, wf_msg_pool *pool, wf_route *from)
{
    wf_msg *m = s->far->ops->receive(s->far, pool, from);

    if (m && is_near(from)) { /* none of weft's names itself */
        wf_msg_free(pool, &m);
        s->bad++;
    }
    s->base.bad_messages = s->bad + s->far->bad_messages;
    return m;
}

static bool is_far_due(shm_transport *s)
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
static wf_msg *shm_receive(wf_transport *t, wf_msg_pool *pool, wf_route *from)
{
    shm_transport *s = (shm_transport *)t;
    wf_msg *m = NULL;

    if (s->armed) {
        s->armed = false;
        s->far_at_ns = 0;
        for (size_t i = 0; i < s->n; i++)
            if (s->conns[i]->memory)
                wf_ring_disarm(&s->conns[i]->in);
        wf_shm_look(s);
    }
    for (size_t k = 0; !m && k <= s->n; k++) {
        size_t at = s->turn++ % (s->n + 1);

        if (at == s->n) {
            m = is_far_due(s) ? receive_far(s, pool, from) : NULL;
            if (m)
                s->far_at_ns = 0; /* there may be more */
            continue;
        }
        m = wf_shm_conn_receive(s->conns[at], pool, &s->bad);
        *from = !s->listens ? (wf_route){0} : route_of(s->conns[at]);
        wf_shm_conn_reap(s->conns[at]);
    }
    return m;
}

static bool shm_ready(wf_transport *t)
{
    shm_transport *s = (shm_transport *)t;

    for (size_t i = 0; i < s->n; i++)
        if (s->conns[i]->memory && !s->conns[i]->why &&
            (wf_ring_ready(&s->conns[i]->in) || wf_ring_has_room(&s->conns[i]->out)))
            return true;
    if (!is_far_due(s) || !s->far->ops->ready(s->far))
        return false;
    s->far_at_ns = 0;
    return true;
}

static bool shm_arm(wf_transport *t)
{
    shm_transport *s = (shm_transport *)t;
    bool something = s->far->ops->arm(s->far);

    s->armed = true;
    for (size_t i = 0; i < s->n; i++)
        if (s->conns[i]->memory && !s->conns[i]->why)
            something |= wf_ring_arm(&s->conns[i]->in);
    return something;
}

/* The connection to a peer, while there is one. */
static wf_shm_conn *open_conn(const shm_transport *s, const wf_route *to)
{
    wf_shm_conn *c = !s->listens || is_near(to) ? conn_of(s, to) : NULL;

    return c && c->state == WF_SHM_UP ? c : NULL;
}

static wf_buf *shm_buf(wf_transport *t, const wf_route *to, size_t bytes, bool several)
{
    const wf_shm_conn *c = open_conn((shm_transport *)t, to);
    bool failed;
    wf_buf *b = c ? wf_shm_pool_take(c->pool, bytes, several, &failed) : NULL;

    return b ? b : wf_buf_new(bytes);
}

static bool shm_lends(wf_transport *t, const wf_route *to, size_t bytes)
{
    return bytes <= WF_SHM_BLOCK_MOST && open_conn((shm_transport *)t, to);
}

static bool shm_tend(wf_transport *t, int64_t now_ns)
{
    shm_transport *s = (shm_transport *)t;
    bool fresh = s->far->ops->tend && s->far->ops->tend(s->far, now_ns);

    wf_shm_look(s);
    wf_shm_end_late(s, now_ns);
    for (size_t i = 0; i < s->n; i++) {
        wf_shm_conn_reap(s->conns[i]);
        if (s->conns[i]->pool)
            wf_shm_pool_tend(s->conns[i]->pool, now_ns);
    }
    if (s->listens && s->door < 0)
        wf_shm_open_door(s, now_ns);
    if (!s->listens && s->n == 0 && now_ns >= s->try_at_ns)
        wf_shm_connect(s, now_ns);
    fresh = s->fresh || (fresh && s->n == 0);
    s->fresh = false;
    return fresh;
}

static void shm_close(wf_transport *t, int linger_ms)
{
    shm_transport *s = (shm_transport *)t;

    for (size_t i = 0; i < s->n; i++)
        wf_shm_conn_free(&s->conns[i]);
    if (s->door >= 0)
        close(s->door);
    close(s->base.fd);
    s->far->ops->close(s->far, linger_ms);
    free(s->conns);
    free(s);
}

static const wf_transport_ops shm_ops = {
    .send = shm_send,
    .receive = shm_receive,
    .ready = shm_ready,
    .arm = shm_arm,
    .buf = shm_buf,
    .lends = shm_lends,
    .tend = shm_tend,
    .close = shm_close,
};

/* A transport in front of *far, or NULL. */
static shm_transport *new_transport(const char *address, wf_transport **far)
{
    shm_transport *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    *s = (shm_transport){
        .base = {.ops = &shm_ops, .fd = epoll_create1(EPOLL_CLOEXEC)}, .far = *far, .door = -1};
    snprintf(s->address, sizeof s->address, "%s", address);
    if (s->base.fd < 0 || !wf_shm_watch(s, s->far->fd, NULL)) {
        if (s->base.fd >= 0)
            close(s->base.fd);
        free(s);
        return NULL;
    }
    *far = NULL;
    return s;
}

void wf_shm_listen(const char *address, wf_transport **far, wf_transport **out)
{
    shm_transport *s = new_transport(address, far);

    if (!s) {
        *out = *far;
        *far = NULL;
        return;
    }
    s->listens = true;
    wf_shm_open_door(s, wf_now_ns());
    *out = &s->base;
}

void wf_shm_dial(const char *address, wf_transport **far, wf_transport **out)
{
    shm_transport *s = new_transport(address, far);

    if (s) {
        wf_shm_connect(s, wf_now_ns());
        *out = &s->base;
        return;
    }
    *out = *far;
    *far = NULL;
}
