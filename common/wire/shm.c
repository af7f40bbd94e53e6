/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/shm.c */
#include "common/wire/shm.h"
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/wire/shm_conn.h"
#include "common/wire/shm_name.h"
#include "common/wire/wires.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static const int64_t ANSWER_NS = WF_NS_PER_S; /* how long a connection may take to be made */
/* Between two looks at the far transport, each of which is a system call, while there are
 * connections. Before a sleep it is always looked at. */
static const int64_t FAR_NS = 20000;
static const int64_t REFUSED_NS = 5 * WF_NS_PER_S; /* until the next try after that */

/* Each look goes over all connections; who comes later is served by the far transport. */
enum { MOST_CONNS = 128, EVENTS = 32 };

typedef struct shm_transport {
    wf_transport base; /* its fd is an epoll */
    wf_transport *far;
    bool listens;
    int door; /* where others connect; -1: nowhere */
    char address[WF_ADDRESSES_MAX];
    wf_shm_conn **conns; /* of one that dials: one at most */
    size_t n, room, turn;
    uint64_t numbers, bad;
    bool armed, fresh;
    int64_t try_at_ns, far_at_ns; /* to connect; to look at the far transport */
} shm_transport;

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

/* ---- connections ---- */

static bool watch(const shm_transport *s, int fd, void *what)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = what};

    return epoll_ctl(s->base.fd, EPOLL_CTL_ADD, fd, &ev) == 0;
}

/* Whether the process at the other end is of this user: another might take the name first. */
static bool is_ours(int fd)
{
    struct ucred who = {0};
    socklen_t size = sizeof who;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == geteuid();
}

/* Takes *c; it is freed when there is no room. */
static bool add_conn(shm_transport *s, wf_shm_conn **c)
{
    wf_shm_conn **conns = s->conns;

    if (s->n == s->room) {
        conns = realloc(s->conns, (s->room + 8) * sizeof(*conns));
        if (conns) {
            s->conns = conns;
            s->room += 8;
        }
    }
    if (!conns || !watch(s, (*c)->fd, *c)) {
        wf_shm_conn_free(c);
        return false;
    }
    (*c)->number = ++s->numbers;
    s->conns[s->n++] = *c;
    *c = NULL;
    return true;
}

/* Whether a connection that is over may be freed: all that was sent has been taken, and nobody
 * reads the other side's memory any more. A living sender keeps it unchanged as long as the socket
 * is open. */
static bool is_done_with(const wf_shm_conn *c)
{
    if (c->state != WF_SHM_OVER)
        return false;
    if (c->why)
        return !c->memory || atomic_load(&c->memory->refs) == 1;
    return !c->memory || c->in.broken || !wf_ring_ready(&c->in);
}

/* Where the system has refused memory, everything goes by the far transport from now on: who came
 * back would be refused again in the middle of a message. */
static void turn_off(shm_transport *s)
{
    s->try_at_ns = INT64_MAX;
    if (s->door >= 0)
        close(s->door);
    s->door = -1;
}

static void sweep(shm_transport *s)
{
    for (size_t i = 0; i < s->n;) {
        if (!is_done_with(s->conns[i])) {
            i++;
            continue;
        }
        if (s->conns[i]->memory)
            WF_LOG_INFO("net.shm_over", "address=%s why=\"%s\"", s->address,
                        s->conns[i]->why ? s->conns[i]->why : "the other side is gone");
        s->fresh |= !s->listens;
        if (s->conns[i]->refused)
            turn_off(s);
        wf_shm_conn_free(&s->conns[i]);
        s->conns[i] = s->conns[--s->n];
    }
}

static void look_at(shm_transport *s, wf_shm_conn *c)
{
    wf_shm_state before = c->state;

    wf_shm_conn_look(c);
    if (before == WF_SHM_ASKED && c->state == WF_SHM_UP) {
        s->fresh = true;
        WF_LOG_INFO("net.shm", "address=%s", s->address);
    } else if (before == WF_SHM_ASKED && c->state == WF_SHM_OVER) {
        s->try_at_ns = wf_now_ns() + REFUSED_NS;
    }
    if (c->state == WF_SHM_OVER) /* its socket would be readable for good */
        (void)epoll_ctl(s->base.fd, EPOLL_CTL_DEL, c->fd, NULL);
}

static void accept_all(shm_transport *s)
{
    int fd;

    while ((fd = accept4(s->door, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        wf_shm_conn *c = NULL;

        if (s->n >= MOST_CONNS || !is_ours(fd))
            close(fd);
        else
            c = wf_shm_conn_await(fd, wf_now_ns());
        if (c)
            (void)add_conn(s, &c);
    }
}

/* What has happened at the sockets. */
static void look(shm_transport *s)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(s->base.fd, events, EVENTS, 0);

    for (int i = 0; i < n; i++) {
        if (events[i].data.ptr == s)
            accept_all(s);
        else if (events[i].data.ptr) /* not of the far transport */
            look_at(s, events[i].data.ptr);
    }
    sweep(s);
}

/* A socket to whoever has the name, or -1. */
static int connect_to(const char *address)
{
    wf_shm_name name;
    int fd = -1;

    if (wf_shm_name_of(address, &name))
        fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 &&
        (connect(fd, (const struct sockaddr *)&name.at, name.size) != 0 || !is_ours(fd))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static void try_to_connect(shm_transport *s, int64_t now_ns)
{
    int fd = connect_to(s->address);
    wf_shm_conn *c;
    const char *why;

    if (fd < 0)
        return;
    s->try_at_ns = now_ns + REFUSED_NS;
    c = wf_shm_conn_ask(fd, now_ns, &why);
    if (!c)
        WF_LOG_INFO("net.shm_refused", "address=%s why=\"%s\"", s->address, why);
    else if (add_conn(s, &c))
        s->try_at_ns = 0;
}

static void end_late(const shm_transport *s, int64_t now_ns)
{
    for (size_t i = 0; i < s->n; i++) {
        wf_shm_conn *c = s->conns[i];

        if ((c->state == WF_SHM_NEW || c->state == WF_SHM_ASKED) &&
            now_ns - c->since_ns >= ANSWER_NS) {
            wf_shm_conn_end(c, "no answer");
            (void)epoll_ctl(s->base.fd, EPOLL_CTL_DEL, c->fd, NULL);
        }
    }
}

/* ---- the transport ---- */

static wf_status shm_send(wf_transport *t, const wf_route *to, const wf_msg *m, wf_err *err)
{
    shm_transport *s = (shm_transport *)t;
    wf_shm_conn *c = !s->listens || is_near(to) ? conn_of(s, to) : NULL;

    if (c && c->state == WF_SHM_ASKED) { /* the answer may be there, or late */
        look_at(s, c);
        end_late(s, wf_now_ns());
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
        look(s);
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
        if (s->conns[i]->memory &&
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

/* Memory of the connection's, while there is one. */
static wf_buf *shm_buf(wf_transport *t, const wf_route *to, size_t bytes)
{
    const shm_transport *s = (shm_transport *)t;
    wf_shm_conn *c = !s->listens || is_near(to) ? conn_of(s, to) : NULL;
    bool failed;
    wf_buf *b = NULL;

    if (c && c->state == WF_SHM_UP)
        b = wf_shm_pool_take(c->pool, bytes, &failed);
    return b ? b : wf_buf_new(bytes);
}

static bool shm_tend(wf_transport *t, int64_t now_ns)
{
    shm_transport *s = (shm_transport *)t;
    bool fresh = s->far->ops->tend && s->far->ops->tend(s->far, now_ns);

    look(s);
    end_late(s, now_ns);
    for (size_t i = 0; i < s->n; i++)
        wf_shm_conn_reap(s->conns[i]);
    if (!s->listens && s->n == 0 && now_ns >= s->try_at_ns)
        try_to_connect(s, now_ns);
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
    if (s->base.fd < 0 || !watch(s, s->far->fd, NULL)) {
        if (s->base.fd >= 0)
            close(s->base.fd);
        free(s);
        return NULL;
    }
    *far = NULL;
    return s;
}

static int open_door(const char *address)
{
    wf_shm_name name;
    int fd = -1;

    if (wf_shm_name_of(address, &name))
        fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && (bind(fd, (const struct sockaddr *)&name.at, name.size) != 0 ||
                    listen(fd, SOMAXCONN) != 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

void wf_shm_listen(const char *address, wf_transport **far, wf_transport **out)
{
    int door = open_door(address);
    shm_transport *s = door >= 0 ? new_transport(address, far) : NULL;

    if (s) {
        s->listens = true;
        s->door = door;
        (void)watch(s, door, s); /* without it nobody is let in */
        *out = &s->base;
        return;
    }
    if (door >= 0)
        close(door);
    *out = *far;
    *far = NULL;
}

void wf_shm_dial(const char *address, wf_transport **far, wf_transport **out)
{
    shm_transport *s = new_transport(address, far);

    if (s) {
        try_to_connect(s, wf_now_ns());
        *out = &s->base;
        return;
    }
    *out = *far;
    *far = NULL;
}
