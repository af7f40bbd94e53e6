/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/stream_reach.c - the connections of a transport: asked for, let in, dialled, looked
 * at, given up. */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/wire/grammar.h"
#include "common/wire/stream_state.h"
#include "common/wire/zeromq.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static const int64_t ANSWER_NS = WF_NS_PER_S;       /* how long each of its two steps may take */
static const int64_t REFUSED_NS = 30 * WF_NS_PER_S; /* until the next try after that */
static const int64_t AGAIN_NS = WF_NS_PER_S;        /* until the next try after one that ended */
static const int64_t OLD_NS = 500 * WF_NS_PER_MS;   /* a new far connection is told of later */

enum { MOST_CONNS = 128, EVENTS = 32, PORT_BYTES = 4, NOTE_BYTES = PORT_BYTES + WF_STREAM_TOKEN };

/* ---- sockets ---- */

static void set_int(int fd, int level, int option, int value)
{
    (void)setsockopt(fd, level, option, &value, sizeof value);
}

/* Nothing waits to be sent together; a peer that is gone is found within seconds. */
static void set_options(int fd)
{
    set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 10000);
    set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, 10);
    set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
    set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

static void set_port(struct sockaddr_storage *at, uint16_t port)
{
    if (at->ss_family == AF_INET)
        ((struct sockaddr_in *)at)->sin_port = htons(port);
    else
        ((struct sockaddr_in6 *)at)->sin6_port = htons(port);
}

static uint16_t port_of(const struct sockaddr_storage *at)
{
    return at->ss_family == AF_INET ? ntohs(((const struct sockaddr_in *)at)->sin_port)
                                    : ntohs(((const struct sockaddr_in6 *)at)->sin6_port);
}

static socklen_t size_of(const struct sockaddr_storage *at)
{
    return at->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

static bool is_own_host(int fd, const struct sockaddr_storage *peer)
{
    struct sockaddr_storage own;
    socklen_t size = sizeof own;

    if (getsockname(fd, (struct sockaddr *)&own, &size) != 0 || own.ss_family != peer->ss_family)
        return false;
    if (own.ss_family == AF_INET)
        return ((struct sockaddr_in *)&own)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)peer)->sin_addr.s_addr;
    return memcmp(&((struct sockaddr_in6 *)&own)->sin6_addr,
                  &((const struct sockaddr_in6 *)peer)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

/* Nothing gets lost within a host, and no link is shared: there bbr, which many systems choose,
 * only holds back what it is given (Cardwell et al. 2016, "BBR: Congestion-Based Congestion
 * Control", ACM Queue 14(5), paces all that it sends). Between hosts the system's choice stays. */
static void choose_congestion_control(int fd, const struct sockaddr_storage *peer)
{
    static const char reno[] = "reno";

    if (is_own_host(fd, peer))
        (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, reno, sizeof reno - 1);
}

/* Takes *c; it is freed when there is no room. */
static bool add_conn(stream_transport *s, wf_stream_conn **c)
{
    struct epoll_event ev = {.events = EPOLLIN | EPOLLOUT, .data.ptr = *c};
    stream_slot *slots = s->slots;
    wf_msg_pool pool = {0};

    if (s->n == s->room) {
        slots = realloc(s->slots, (s->room + 8) * sizeof(*slots));
        if (slots) {
            s->slots = slots;
            s->room += 8;
        }
    }
    if (!slots || epoll_ctl(s->base.fd, EPOLL_CTL_ADD, (*c)->fd, &ev) != 0) {
        wf_stream_conn_free(c, &pool);
        return false;
    }
    (*c)->number = ++s->numbers;
    s->slots[s->n] = (stream_slot){.c = *c, .writes = true};
    wf_stream_watch_writes(s, &s->slots[s->n++]);
    *c = NULL;
    return true;
}

void wf_stream_watch_writes(stream_transport *s, stream_slot *slot)
{
    bool writes = wf_stream_conn_writes(slot->c);
    struct epoll_event ev = {.events = writes ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = slot->c};

    if (writes == slot->writes || slot->c->state == WF_STREAM_OVER)
        return;
    if (epoll_ctl(s->base.fd, EPOLL_CTL_MOD, slot->c->fd, &ev) == 0)
        slot->writes = writes;
}

/* ---- of one that listens ---- */

static void open_door(stream_transport *s)
{
    struct sockaddr_storage at;
    socklen_t size = sizeof at;
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = s};
    int fd;

    if (!wf_zmq_bound(s->far, &at))
        return;
    set_port(&at, 0);
    fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    if (bind(fd, (const struct sockaddr *)&at, size_of(&at)) != 0 || listen(fd, SOMAXCONN) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) != 0 ||
        epoll_ctl(s->base.fd, EPOLL_CTL_ADD, fd, &ev) != 0) {
        close(fd);
        return;
    }
    s->door = fd;
    s->port = port_of(&at);
}

static void answer(stream_transport *s, wf_msg_pool *pool, const wf_route *to)
{
    uint8_t *note;
    wf_msg *m = NULL;

    if (s->door < 0)
        open_door(s);
    if (s->door < 0 || s->n >= MOST_CONNS || wf_msg_new(pool, WF_STREAM_AT, &m, NULL) != WF_OK)
        return;
    note = wf_msg_control(m, NOTE_BYTES);
    if (note) {
        wf_put_u32(note, s->port);
        memcpy(note + PORT_BYTES, s->token, sizeof s->token);
        (void)!s->far->ops->send(s->far, to, m, NULL);
    }
    wf_msg_free(pool, &m);
}

/* Who waits there stays where it was until there are descriptors again, and would have each wait
 * end at once: the next ask opens another port. */
static void close_door(stream_transport *s)
{
    WF_LOG_WARN("net.stream_closed", "address=%s why=\"%s\"", s->address, strerror(errno));
    close(s->door);
    s->door = -1;
}

static void accept_all(stream_transport *s)
{
    struct sockaddr_storage peer = {0};
    socklen_t size = sizeof peer;
    int fd;

    while ((fd = accept4(s->door, (struct sockaddr *)&peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC)) >=
           0) {
        wf_stream_conn *c = NULL;

        set_options(fd);
        choose_congestion_control(fd, &peer);
        size = sizeof peer;
        if (s->n >= MOST_CONNS)
            close(fd);
        else
            c = wf_stream_conn_new(fd, true, s->token, s->pool, wf_now_ns());
        if (c)
            (void)add_conn(s, &c);
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        close_door(s);
}

/* ---- of one that dials ---- */

void wf_stream_want(stream_transport *s, uint16_t kind)
{
    const wf_kind_row *row = wf_kind_find(kind);
    int64_t now_ns;
    wf_msg_pool pool = {0};
    wf_msg *m = NULL;

    if (s->listens || s->asked || s->n > 0 || !row || row->frames_limit == 0)
        return;
    now_ns = wf_now_ns();
    if (now_ns < s->try_at_ns || wf_msg_new(&pool, WF_STREAM_ASK, &m, NULL) != WF_OK)
        return;
    s->asked = s->far->ops->send(s->far, &(wf_route){0}, m, NULL) == WF_OK;
    s->asked_ns = now_ns;
    wf_msg_free(&pool, &m);
    wf_msg_pool_close(&pool);
}

static void dial(stream_transport *s, const wf_msg *m)
{
    struct sockaddr_storage at;
    wf_stream_conn *c = NULL;
    int fd;

    s->asked = false;
    s->try_at_ns = wf_now_ns() + REFUSED_NS;
    if (m->head.control_bytes != NOTE_BYTES || !wf_zmq_peer(s->far, &at))
        return;
    set_port(&at, (uint16_t)wf_get_u32(m->control));
    fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    set_options(fd);
    if (connect(fd, (const struct sockaddr *)&at, size_of(&at)) != 0 && errno != EINPROGRESS) {
        close(fd);
        return;
    }
    choose_congestion_control(fd, &at);
    c = wf_stream_conn_new(fd, false, m->control + PORT_BYTES, s->pool, wf_now_ns());
    if (c)
        (void)add_conn(s, &c);
}

bool wf_stream_take_note(stream_transport *s, wf_msg_pool *pool, const wf_route *from, wf_msg **m)
{
    uint16_t kind = (*m)->head.kind;

    if (kind != WF_STREAM_ASK && kind != WF_STREAM_AT)
        return false;
    if (kind == WF_STREAM_ASK && s->listens)
        answer(s, pool, from);
    else if (kind == WF_STREAM_AT && s->asked)
        dial(s, *m);
    else
        s->bad++;
    wf_msg_free(pool, m);
    return true;
}

/* ---- of both ---- */

static void look_at(stream_transport *s, wf_stream_conn *c)
{
    wf_stream_state before = c->state;

    wf_stream_conn_look(c);
    if (before != WF_STREAM_UP && c->state == WF_STREAM_UP && !s->listens)
        WF_LOG_INFO("net.stream", "address=%s", s->address);
}

static void forget(stream_transport *s, size_t i)
{
    wf_stream_conn *c = s->slots[i].c;
    wf_msg_pool pool = {0};

    if (!s->listens) { /* at a listener others come and go */
        WF_LOG_INFO("net.stream_over", "address=%s why=\"%s\"", s->address,
                    c->why ? c->why : "the other side has ended it");
        s->fresh = true; /* the link is to look at once what was lost */
        s->try_at_ns = wf_now_ns() + (c->was_up ? AGAIN_NS : REFUSED_NS);
    }
    wf_stream_conn_free(&s->slots[i].c, &pool);
    wf_msg_pool_close(&pool);
    s->slots[i] = s->slots[--s->n];
}

void wf_stream_look(stream_transport *s)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(s->base.fd, events, EVENTS, 0);

    for (int i = 0; i < n; i++) {
        if (events[i].data.ptr == s)
            accept_all(s);
        else if (events[i].data.ptr) /* not of the far transport */
            look_at(s, events[i].data.ptr);
    }
    for (size_t i = 0; i < s->n;) {
        wf_stream_watch_writes(s, &s->slots[i]);
        if (s->slots[i].c->state == WF_STREAM_OVER)
            forget(s, i);
        else
            i++;
    }
}

void wf_stream_end_late(stream_transport *s, int64_t now_ns, bool far_is_fresh)
{
    if (s->asked && now_ns - s->asked_ns >= ANSWER_NS) {
        s->asked = false;
        s->try_at_ns = now_ns + REFUSED_NS;
    }
    for (size_t i = 0; i < s->n; i++) {
        wf_stream_conn *c = s->slots[i].c;

        if (c->state != WF_STREAM_UP && now_ns - c->since_ns >= ANSWER_NS)
            wf_stream_conn_end(c, "no answer");
        else if (!s->listens && far_is_fresh && now_ns - c->since_ns >= OLD_NS)
            wf_stream_conn_end(c, "the peer was dialled anew");
    }
}
