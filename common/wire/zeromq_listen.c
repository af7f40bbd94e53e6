/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/zeromq_listen.c - the connections of a transport that listens: whoever says nothing
 * for a while is put out.
 *
 * A dialler of weft's pings twice a second, so a connection that brings nothing for QUIET_MS has
 * nobody at its other end, or a stranger. ZeroMQ's own means do not do: the TTL of a ping is
 * forgotten with the next message, and a timeout costs a search through the timers of all
 * connections for each answer. Connections are those of this process's descriptors that have the
 * listener's port.
 */
#include "common/base/clock.h"
#include "common/log/log.h"
#include "common/wire/zeromq_state.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <zmq.h>

enum {
    QUIET_MS = 15000,
    SWEEP_MS = 3000,
    ESTABLISHED = 1 /* TCP_ESTABLISHED of netinet/tcp.h, which does not go with linux/tcp.h */
};

/* The port of this side; 0 when it is no TCP socket. */
static int port_of(int fd)
{
    struct sockaddr_storage at = {0}; /* a socket of some kinds has no name to fill in */
    socklen_t size = sizeof at;

    if (getsockname(fd, (struct sockaddr *)&at, &size) != 0)
        return 0;
    if (at.ss_family == AF_INET)
        return ntohs(((struct sockaddr_in *)&at)->sin_port);
    return at.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&at)->sin6_port) : 0;
}

static bool is_quiet(int fd)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
           info.tcpi_state == ESTABLISHED && info.tcpi_last_data_recv >= QUIET_MS;
}

/* Ends what is quiet; ZeroMQ then finds the connection closed, and frees it. */
static uint32_t sweep(int port)
{
    DIR *list = opendir("/proc/self/fd");
    const struct dirent *row;
    uint32_t n = 0;

    while (list && (row = readdir(list))) {
        int fd = (int)strtol(row->d_name, NULL, 10);

        if (row->d_name[0] != '.' && port_of(fd) == port && is_quiet(fd))
            n += shutdown(fd, SHUT_RDWR) == 0;
    }
    if (list)
        closedir(list);
    return n;
}

/* The port behind the last colon of what the socket is bound to; 0 when it is no TCP. */
static int bound_port(void *socket)
{
    char address[256] = "";
    size_t size = sizeof address;
    const char *colon;

    if (zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, address, &size) != 0 ||
        strncmp(address, "tcp:", 4) != 0)
        return 0;
    colon = strrchr(address, ':');
    return (int)strtol(colon + 1, NULL, 10);
}

/* ZeroMQ says "tcp://10.0.0.5:7710" or "tcp://[::1]:7710" of what it is bound to. */
bool wf_zmq_bound(const wf_transport *t, struct sockaddr_storage *at)
{
    char address[256] = "", *host = address + strlen("tcp://"), *colon;
    size_t size = sizeof address;

    memset(at, 0, sizeof *at);
    if (zmq_getsockopt(((const zmq_transport *)t)->socket, ZMQ_LAST_ENDPOINT, address, &size) !=
            0 ||
        strncmp(address, "tcp://", strlen("tcp://")) != 0)
        return false;
    colon = strrchr(host, ':');
    if (!colon)
        return false;
    *colon = 0;
    if (*host == '[' && colon[-1] == ']') {
        colon[-1] = 0;
        at->ss_family = AF_INET6;
        return inet_pton(AF_INET6, host + 1, &((struct sockaddr_in6 *)at)->sin6_addr) == 1;
    }
    at->ss_family = AF_INET;
    return inet_pton(AF_INET, host, &((struct sockaddr_in *)at)->sin_addr) == 1;
}

bool wf_zmq_tend_listener(wf_transport *t, int64_t now_ns)
{
    zmq_transport *z = (zmq_transport *)t;
    uint32_t n;

    if (now_ns < z->sweep_ns)
        return false;
    z->sweep_ns = now_ns + SWEEP_MS * WF_NS_PER_MS;
    if (!z->port)
        z->port = bound_port(z->socket);
    n = z->port ? sweep(z->port) : 0;
    if (n)
        WF_LOG_INFO("net.quiet_closed", "connections=%u", n);
    return false;
}
