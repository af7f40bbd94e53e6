/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/shm_reach.c - the connections of a transport: let in, dialled, looked at, given up.
 */
#include "common/base/clock.h"
#include "common/log/log.h"
#include "common/wire/shm_name.h"
#include "common/wire/shm_note.h"
#include "common/wire/shm_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static const int64_t ANSWER_NS = WF_NS_PER_S;      /* how long a connection may take to be made */
static const int64_t REFUSED_NS = 5 * WF_NS_PER_S; /* until the next try after that */

/* Each look goes over all connections; who comes later is served by the far transport. */
enum { MOST_CONNS = 128, EVENTS = 32 };

bool wf_shm_watch(const shm_transport *s, int fd, void *what)
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
    if (!conns || !wf_shm_watch(s, (*c)->fd, *c)) {
        wf_shm_conn_free(c);
        return false;
    }
    (*c)->number = ++s->numbers;
    s->conns[s->n++] = *c;
    *c = NULL;
    return true;
}

/* Whether a connection that is over may be freed. Of one whose other side is gone, all that it sent
 * has been taken. One that this side has given up stays while the other lives and either uses the
 * other's memory: as long as the socket is open, neither writes over what it has lent. */
static bool is_done_with(wf_shm_conn *c)
{
    if (c->state != WF_SHM_OVER)
        return false;
    if (!c->memory)
        return true;
    if (!c->why)
        return c->in.broken || !wf_ring_ready(&c->in);
    wf_shm_conn_reap(c);
    return (c->n_busy == 0 && atomic_load(&c->memory->refs) == 1) || wf_shm_note_is_end(c->fd);
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
        if (s->conns[i]->memory && (!s->listens || s->conns[i]->why)) /* others come and go */
            WF_LOG_INFO("net.shm_over", "address=%s why=\"%s\"", s->address,
                        s->conns[i]->why ? s->conns[i]->why : "the other side is gone");
        s->fresh |= !s->listens;
        if (s->conns[i]->refused)
            turn_off(s);
        wf_shm_conn_free(&s->conns[i]);
        s->conns[i] = s->conns[--s->n];
    }
}

void wf_shm_look_at(shm_transport *s, wf_shm_conn *c)
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

/* Who waits there would have each wait end at once until there are descriptors again; they go by
 * the far transport, and try again later. */
static void close_door(shm_transport *s)
{
    WF_LOG_WARN("net.shm_closed", "address=%s why=\"%s\"", s->address, strerror(errno));
    close(s->door);
    s->door = -1;
    s->try_at_ns = wf_now_ns() + REFUSED_NS;
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
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        close_door(s);
}

void wf_shm_look(shm_transport *s)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(s->base.fd, events, EVENTS, 0);

    for (int i = 0; i < n; i++) {
        if (events[i].data.ptr == s)
            accept_all(s);
        else if (events[i].data.ptr) /* not of the far transport */
            wf_shm_look_at(s, events[i].data.ptr);
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

void wf_shm_connect(shm_transport *s, int64_t now_ns)
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

void wf_shm_end_late(const shm_transport *s, int64_t now_ns)
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

void wf_shm_open_door(shm_transport *s, int64_t now_ns)
{
    wf_shm_name name;
    int fd = -1;

    if (now_ns < s->try_at_ns)
        return;
    if (wf_shm_name_of(s->address, &name))
        fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && (bind(fd, (const struct sockaddr *)&name.at, name.size) != 0 ||
                    listen(fd, SOMAXCONN) != 0 || !wf_shm_watch(s, fd, s))) {
        close(fd);
        fd = -1;
    }
    s->door = fd;
    if (fd < 0)
        s->try_at_ns = now_ns + REFUSED_NS;
}
