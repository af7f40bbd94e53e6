/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/zeromq.c - contexts, sockets and their options. */
#include "common/base/size.h"
#include "common/wire/owner.h"
#include "common/wire/wires.h"
#include "common/wire/zeromq_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

enum {
    FRAME_LIMIT =
        (256 << 20) + (64 << 10), /* the largest control message, or a slice, and a margin */
    SOCKET_BUFFER = 4 << 20,      /* a slice goes to the kernel in one call */
    HIGH_WATER = 1024,            /* messages; bytes are bounded by the links' credit */
    SPARE_FILES = 64,             /* for files, threads of ZeroMQ, newcomers */
    FILES_A_CONNECTION = 2,
    FILES_SHARED =
        640, /* at most, of shm.c and stream.c: 128 connections with 2 and 1 each, ports */
    MOST_SOCKETS = 65535 /* of ZeroMQ */
};

/* ZeroMQ ends the process where a socket's own descriptors cannot be made, so the need is known at
 * the start: a connection has one, now and then one that is being made. */
static rlim_t files_of(uint32_t connections)
{
    rlim_t each = (rlim_t)connections * FILES_A_CONNECTION;

    return SPARE_FILES + each + WF_MIN(each, (rlim_t)FILES_SHARED);
}

uint32_t wf_zmq_most(uint32_t wanted)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return wanted; /* wf_zmq_new says why not */
    while (wanted > 1 && files_of(wanted) > limit.rlim_cur)
        wanted--;
    return wanted;
}

static wf_status check_limit(uint32_t connections, wf_err *err)
{
    rlim_t needed = files_of(connections);
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return wf_fail_errno(err, errno, NULL, "cannot read the limit on open files");
    if (limit.rlim_cur >= needed)
        return WF_OK;
    return wf_fail(err, WF_FULL, "raise it: ulimit -n 65536",
                   "%u connections need %lu open files, and the limit is %lu", connections,
                   (unsigned long)needed, (unsigned long)limit.rlim_cur);
}

wf_status wf_zmq_new(uint32_t connections, wf_zmq **out, wf_err *err)
{
    wf_zmq *z = calloc(1, sizeof *z);
    wf_status rc;

    if (!z)
        return wf_fail_nomem(err, sizeof *z);
    rc = check_limit(connections, err);
    if (rc != WF_OK) {
        free(z);
        return rc;
    }
    z->context = zmq_ctx_new();
    if (!z->context) {
        free(z);
        return wf_fail_errno(err, errno, NULL, "cannot start ZeroMQ");
    }
    zmq_ctx_set(z->context, ZMQ_MAX_SOCKETS,
                (int)WF_MIN(SPARE_FILES + 2 * connections, (uint32_t)MOST_SOCKETS));
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

int wf_zmq_set_int(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof value);
}

static int set_options(void *socket)
{
    int64_t frame_limit = FRAME_LIMIT;
    int failed = 0;

    failed |= wf_zmq_set_int(socket, ZMQ_LINGER, 0);
    failed |= wf_zmq_set_int(socket, ZMQ_SNDHWM, HIGH_WATER);
    failed |= wf_zmq_set_int(socket, ZMQ_RCVHWM, HIGH_WATER);
    failed |= zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &frame_limit, sizeof frame_limit);
    failed |= wf_zmq_set_int(socket, ZMQ_HANDSHAKE_IVL, 3000);
    failed |= wf_zmq_set_int(socket, ZMQ_TCP_KEEPALIVE, 1);
    failed |= wf_zmq_set_int(socket, ZMQ_TCP_KEEPALIVE_IDLE, 30);
    failed |= wf_zmq_set_int(socket, ZMQ_TCP_MAXRT, 10000);
    failed |= wf_zmq_set_int(socket, ZMQ_BACKLOG, 512);
    failed |= wf_zmq_set_int(socket, ZMQ_SNDBUF, SOCKET_BUFFER);
    failed |= wf_zmq_set_int(socket, ZMQ_RCVBUF, SOCKET_BUFFER);
    return failed;
}

/* Also what arms it: ZMQ_FD becomes readable with what comes after ZMQ_EVENTS was read. */
bool wf_zmq_ready(wf_transport *t)
{
    int events = 0;
    size_t size = sizeof events;

    zmq_getsockopt(((zmq_transport *)t)->socket, ZMQ_EVENTS, &events, &size);
    return events & ZMQ_POLLIN;
}

void wf_zmq_close(wf_transport *t, int linger_ms)
{
    zmq_transport *z = (zmq_transport *)t;

    wf_zmq_set_int(z->socket, ZMQ_LINGER, linger_ms);
    if (z->monitor) {
        zmq_socket_monitor(z->socket, NULL, 0);
        zmq_close(z->monitor);
    }
    zmq_close(z->socket);
    free(z);
}

static const wf_transport_ops router_ops = {
    .send = wf_zmq_send,
    .receive = wf_zmq_receive,
    .ready = wf_zmq_ready,
    .arm = wf_zmq_ready,
    .tend = wf_zmq_tend_listener,
    .close = wf_zmq_close,
};

wf_status wf_zmq_open(wf_zmq *z, int type, const wf_transport_ops *ops, zmq_transport **out,
                      wf_err *err)
{
    zmq_transport *t = calloc(1, sizeof *t);

    if (!t)
        return wf_fail_nomem(err, sizeof *t);
    t->base.ops = ops;
    t->router = type == ZMQ_ROUTER;
    t->context = z->context;
    t->fd = -1;
    t->socket = zmq_socket(z->context, type);
    t->base.fd = -1;
    if (!t->socket) {
        free(t);
        return wf_fail_errno(err, errno, "raise the limit on open files: ulimit -n 65536",
                             "cannot make a socket");
    }
    if (zmq_getsockopt(t->socket, ZMQ_FD, &t->base.fd, &(size_t){sizeof t->base.fd}) != 0 ||
        set_options(t->socket) != 0) {
        wf_zmq_close(&t->base, 0);
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
    return wf_fail(err, WF_INVALID,
                   error == ENOENT ? "make its folder first"
                                   : "write tcp://HOST:PORT or ipc://PATH",
                   "cannot listen at %s: %s", address, zmq_strerror(error));
}

wf_status wf_zmq_listen(wf_zmq *z, const char *address, wf_transport **out, wf_err *err)
{
    zmq_transport *t = NULL;

    WF_TRY(wf_zmq_open(z, ZMQ_ROUTER, &router_ops, &t, err));
    wf_zmq_set_int(t->socket, ZMQ_ROUTER_MANDATORY, 1);
    /* Only who dials pings: whoever connects would else have this side's thread write to it, and
     * ten thousand strangers cost a fifth of the rate. */
    if (zmq_bind(t->socket, address) != 0) {
        int error = errno;

        wf_zmq_close(&t->base, 0);
        return bind_failed(address, error, err);
    }
    *out = &t->base;
    return WF_OK;
}

/* ---- the kinds ---- */

static wf_status open_library(uint32_t connections, void **library, wf_err *err)
{
    wf_zmq *z = NULL;

    WF_TRY(wf_zmq_new(connections, &z, err));
    *library = z;
    return WF_OK;
}

static void close_library(void *library)
{
    wf_zmq *z = library;

    wf_zmq_free(&z);
}

static wf_status listen_at(void *library, const char *address, wf_transport **out, wf_err *err)
{
    return wf_zmq_listen(library, address, out, err);
}

static wf_status dial_to(void *library, const char *address, wf_transport **out, wf_err *err)
{
    return wf_zmq_dial(library, address, out, err);
}

/* Whether a process of this host accepts at the path. */
static bool is_accepted(void *library, const char *address)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool yes;

    (void)library;
    snprintf(at.sun_path, sizeof at.sun_path, "%s", address + strlen("ipc://"));
    yes = fd >= 0 && connect(fd, (const struct sockaddr *)&at, sizeof at) == 0;
    if (fd >= 0)
        close(fd);
    return yes;
}

const wf_wire_kind wf_wire_kind_ipc = {.scheme = "ipc://",
                                       .crosses = true,
                                       .form = "ipc://PATH",
                                       .open = open_library,
                                       .close = close_library,
                                       .listen = listen_at,
                                       .dial = dial_to,
                                       .can_reach = is_accepted};
const wf_wire_kind wf_wire_kind_tcp = {.scheme = "tcp://",
                                       .crosses = true,
                                       .form = "tcp://HOST:PORT",
                                       .open = open_library,
                                       .close = close_library,
                                       .listen = listen_at,
                                       .dial = dial_to};
