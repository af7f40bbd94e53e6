/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/ports.c */
#include "cmd/cli/ports.h"
#include "cmd/cli/lost.h"
#include "common/wire/owner.h"
#include "common/wire/wires.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

typedef struct endpoint {
    struct sockaddr_storage at;
    socklen_t size;
} endpoint;

/* False when the host's name says nothing to the resolver. */
static bool resolve(const wf_task_conf *t, endpoint *out)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    char port[16];

    *out = (endpoint){0};
    if (!t->host) {
        struct sockaddr_un *un = (struct sockaddr_un *)&out->at;

        un->sun_family = AF_UNIX;
        snprintf(un->sun_path, sizeof un->sun_path, "%s", t->path);
        out->size = sizeof *un;
        return true;
    }
    snprintf(port, sizeof port, "%u", t->port);
    if (getaddrinfo(t->host, port, &hints, &found) != 0)
        return false;
    memcpy(&out->at, found->ai_addr, found->ai_addrlen);
    out->size = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

static bool same_host(const struct sockaddr *a, const struct sockaddr_storage *b)
{
    if (!a || a->sa_family != b->ss_family)
        return false;
    if (a->sa_family == AF_INET)
        return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)b)->sin_addr.s_addr;
    return a->sa_family == AF_INET6 &&
           memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
                  &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

bool wf_port_is_here(const wf_task_conf *t)
{
    struct ifaddrs *all = NULL;
    endpoint e;
    bool here = false;

    if (!t->host || strncmp(t->host, "127.", 4) == 0)
        return true;
    if (!resolve(t, &e) || getifaddrs(&all) != 0)
        return false;
    for (const struct ifaddrs *i = all; i; i = i->ifa_next)
        here = here || same_host(i->ifa_addr, &e.at);
    freeifaddrs(all);
    return here;
}

/* A host that is not there answers nothing at all, and the kernel would ask it for minutes. */
static bool is_connected_soon(int fd)
{
    enum { ANSWER_MS = 2000 };
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int why = 0;
    socklen_t size = sizeof why;

    return poll(&p, 1, ANSWER_MS) == 1 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &size) == 0 &&
           why == 0;
}

bool wf_port_answers(const wf_task_conf *t)
{
    endpoint e;
    bool yes;
    int fd;

    if (!resolve(t, &e))
        return false;
    fd = socket(e.at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    yes = connect(fd, (const struct sockaddr *)&e.at, e.size) == 0;
    if (!yes && errno == EINPROGRESS)
        yes = is_connected_soon(fd);
    close(fd);
    return yes;
}

/* Whether an address is taken now; *holder tells by whom, where that can be known. */
static wf_status look(const wf_task_conf *t, const char *who, bool *taken, char *holder,
                      size_t size, wf_err *err)
{
    const char *rest = t->address; /* tcp stands first */
    char tcp[WF_ADDRESSES_MAX];
    const int on = 1;
    endpoint e;
    int fd, why;

    holder[0] = 0;
    if (!t->host) {
        *taken = wf_port_answers(t);
        return WF_OK;
    }
    if (!resolve(t, &e))
        return wf_fail(err, WF_INVALID, "check the name in the cluster file",
                       "%s: the host of %s is not known here", who, t->address);
    fd = socket(e.at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return wf_fail_errno(err, errno, NULL, "cannot make a socket");
    /* As ZeroMQ binds: connections of a process that ended a moment ago do not count. */
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    *taken = bind(fd, (const struct sockaddr *)&e.at, e.size) != 0;
    why = *taken ? errno : 0;
    close(fd);
    if (*taken && why != EADDRINUSE)
        return wf_fail_errno(err, why, NULL, "%s cannot have %s", who, t->address);
    if (*taken && wf_wires_next(&rest, tcp))
        wf_port_owner(tcp, holder, size);
    return WF_OK;
}

wf_status wf_port_check_free(const wf_task_conf *t, const char *who, wf_err *err)
{
    /* A process that was killed a moment ago holds its port, unseen, until its last thread is gone:
     * someone who cannot be named is given this time. */
    enum { GOING_MS = 1000, LOOK_MS = 20 };
    char holder[160], file[PATH_MAX], hint[PATH_MAX + 96];
    bool taken = true;

    for (int waited_ms = 0; waited_ms <= GOING_MS; waited_ms += LOOK_MS) {
        WF_TRY(look(t, who, &taken, holder, sizeof holder, err));
        if (!taken)
            return WF_OK;
        if (holder[0])
            break;
        poll(NULL, 0, LOOK_MS);
    }
    snprintf(hint, sizeof hint, "end that process, or give the task another address");
    if (wf_lost_owner(t->address, file))
        snprintf(hint, sizeof hint,
                 "give the task another address, or end that cluster with: weft down %s", file);
    return wf_fail(err, WF_INVALID, hint, "%s cannot have %s: it is in use%s%s", who, t->address,
                   holder[0] ? " by " : "", holder);
}
