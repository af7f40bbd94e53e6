/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/zeromq_dial.c - the connection of a transport that dials: watched, and dialled anew
 * when it is silent. */
#include "common/base/clock.h"
#include "common/log/log.h"
#include "common/wire/zeromq_state.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <zmq.h>

/* A connection without a sign of life for so long is dialled anew. ZeroMQ's I/O thread pings three
 * times as often, and the other side's answers, whatever the threads that own the sockets do. */
static const int64_t SILENT_NS = 1500 * WF_NS_PER_MS;

/* A ping waits behind what is sent, so that a long upload has no answer for a while: there, so many
 * bytes that the other side has taken are a sign of life. Pings alone never come to so many. */
enum { UPLOADED_BYTES = 4096 };

/* What the monitor tells: an event's number and value (the descriptor of one that is connected or
 * not any more), then the address. */
static void read_monitor(zmq_transport *z, int64_t now_ns)
{
    uint8_t event[6], address[256];
    uint16_t number;
    int32_t value;

    while (zmq_recv(z->monitor, event, sizeof event, ZMQ_DONTWAIT) == (int)sizeof event) {
        (void)!zmq_recv(z->monitor, address, sizeof address, ZMQ_DONTWAIT);
        memcpy(&number, event, sizeof number);
        memcpy(&value, event + sizeof number, sizeof value);
        if (number == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
            z->fresh = true;
        } else if (number == ZMQ_EVENT_CONNECTED) {
            z->fd = value;
            z->received = z->taken = 0;
            z->life_ns = now_ns;
        } else if (z->fd == value) {
            z->fd = -1;
        }
    }
}

/* What the kernel knows of the connection; false when it is no TCP. */
static bool look_at_tcp(int fd, struct tcp_info *info)
{
    socklen_t size = sizeof *info;

    return fd >= 0 && getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &size) == 0;
}

/* Whether something has come in, or an upload goes on, since the last sign of life. */
static bool lives(const zmq_transport *z, const struct tcp_info *info)
{
    bool uploads = info->tcpi_unacked > 0 || info->tcpi_notsent_bytes > 0;

    return info->tcpi_bytes_received != z->received ||
           (uploads && info->tcpi_bytes_acked - z->taken >= UPLOADED_BYTES);
}

static bool zmq_tend(wf_transport *t, int64_t now_ns)
{
    zmq_transport *z = (zmq_transport *)t;
    struct tcp_info info = {0};
    bool fresh;

    read_monitor(z, now_ns);
    fresh = z->fresh;
    z->fresh = false;
    if (!look_at_tcp(z->fd, &info) || lives(z, &info)) {
        z->received = info.tcpi_bytes_received;
        z->taken = info.tcpi_bytes_acked;
        z->life_ns = now_ns;
    } else if (now_ns - z->life_ns >= SILENT_NS) {
        WF_LOG_INFO("net.redialled", "address=%s silent_ms=%ld", z->address,
                    (long)((now_ns - z->life_ns) / WF_NS_PER_MS));
        z->fd = -1;
        zmq_disconnect(z->socket, z->address);
        if (zmq_connect(z->socket, z->address) != 0)
            WF_LOG_WARN("net.not_dialled", "address=%s why=\"%s\"", z->address,
                        zmq_strerror(errno));
    }
    return fresh;
}

bool wf_zmq_peer(const wf_transport *t, struct sockaddr_storage *at)
{
    const zmq_transport *z = (const zmq_transport *)t;
    socklen_t size = sizeof *at;

    return z->fd >= 0 && getpeername(z->fd, (struct sockaddr *)at, &size) == 0 &&
           (at->ss_family == AF_INET || at->ss_family == AF_INET6);
}

static const wf_transport_ops dealer_ops = {
    .send = wf_zmq_send,
    .receive = wf_zmq_receive,
    .ready = wf_zmq_ready,
    .arm = wf_zmq_ready,
    .tend = zmq_tend,
    .close = wf_zmq_close,
};

/* A frame of a slice may take long over a slow network, and nothing overtakes it: silence is judged
 * by bytes (zmq_tend), and ZeroMQ's own deadline only clears up what is left behind. */
static void ping(void *socket)
{
    wf_zmq_set_int(socket, ZMQ_HEARTBEAT_IVL, 500);
    wf_zmq_set_int(socket, ZMQ_HEARTBEAT_TIMEOUT, 30000);
}

/* Watches the connections of a socket that dials, before it does. */
static wf_status watch(zmq_transport *t, wf_err *err)
{
    static atomic_uint numbers;
    char name[48];

    snprintf(name, sizeof name, "inproc://monitor-%u", atomic_fetch_add(&numbers, 1));
    t->monitor = zmq_socket(t->context, ZMQ_PAIR);
    if (!t->monitor || wf_zmq_set_int(t->monitor, ZMQ_LINGER, 0) != 0 ||
        zmq_socket_monitor(t->socket, name,
                           ZMQ_EVENT_CONNECTED | ZMQ_EVENT_DISCONNECTED |
                               ZMQ_EVENT_HANDSHAKE_SUCCEEDED) != 0 ||
        zmq_connect(t->monitor, name) != 0)
        return wf_fail_errno(err, errno, "raise the limit on open files: ulimit -n 65536",
                             "cannot watch a connection");
    return WF_OK;
}

wf_status wf_zmq_dial(wf_zmq *z, const char *address, wf_transport **out, wf_err *err)
{
    zmq_transport *t = NULL;
    wf_status rc;

    WF_TRY(wf_zmq_open(z, ZMQ_DEALER, &dealer_ops, &t, err));
    wf_zmq_set_int(t->socket, ZMQ_IMMEDIATE, 1);
    wf_zmq_set_int(t->socket, ZMQ_RECONNECT_IVL, 50);
    wf_zmq_set_int(t->socket, ZMQ_RECONNECT_IVL_MAX, 1000);
    wf_zmq_set_int(t->socket, ZMQ_CONNECT_TIMEOUT, 3000);
    ping(t->socket);
    snprintf(t->address, sizeof t->address, "%s", address);
    rc = watch(t, err);
    if (rc == WF_OK && zmq_connect(t->socket, address) != 0)
        rc = wf_fail(err, WF_INVALID, "write tcp://HOST:PORT or ipc://PATH", "cannot dial %s: %s",
                     address, zmq_strerror(errno));
    if (rc != WF_OK)
        wf_zmq_close(&t->base, 0);
    else
        *out = &t->base;
    return rc;
}
