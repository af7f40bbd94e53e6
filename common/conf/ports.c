/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/ports.c */
#include "common/conf/ports.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/* All sockets stay open until the last is drawn, so that no two are the same. */
wf_status wf_ports_draw(uint32_t ports[], size_t n, wf_err *err)
{
    wf_status rc = WF_OK;
    int fds[WF_PORTS_MOST];
    size_t open = 0;

    wf_assert(n <= WF_PORTS_MOST);

    for (; rc == WF_OK && open < n; open++) {
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
        socklen_t size = sizeof at;

        fds[open] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fds[open] < 0) {
            rc = wf_fail_errno(err, errno, NULL, "cannot make a socket");
            break;
        }
        if (bind(fds[open], (struct sockaddr *)&at, sizeof at) != 0 ||
            getsockname(fds[open], (struct sockaddr *)&at, &size) != 0)
            rc = wf_fail_errno(err, errno, NULL, "cannot find a free port on this host");
        ports[open] = ntohs(at.sin_port);
    }
    while (open > 0)
        close(fds[--open]);
    return rc;
}
