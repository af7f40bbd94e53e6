/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/between.c */
#include "between.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

int between_connect(int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

enum { MOST_CARRIED = 1 << 16, SLOWLY_CARRIED = 4096 };

static void reset(int fd)
{
    struct linger now = {.l_onoff = 1};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(fd);
}

static bool carry(int from, int to, size_t most)
{
    static uint8_t bytes[MOST_CARRIED];
    ssize_t n = recv(from, bytes, most, MSG_DONTWAIT);

    return n > 0 ? send(to, bytes, (size_t)n, MSG_NOSIGNAL) == n : n < 0;
}

static void *stand_between(void *arg)
{
    between *b = arg;
    int pairs[8][2], n = 0;

    while (!b->stop) {
        struct pollfd fds[17] = {{.fd = b->listener, .events = POLLIN}};

        for (int i = 0; i < n; i++) {
            fds[1 + 2 * i] = (struct pollfd){.fd = pairs[i][0], .events = POLLIN};
            fds[2 + 2 * i] = (struct pollfd){.fd = pairs[i][1], .events = POLLIN};
        }
        if (b->slow)
            poll(NULL, 0, 10);
        poll(fds, (nfds_t)(1 + 2 * n), 10);
        if (fds[0].revents && n < 8) {
            pairs[n][0] = accept(b->listener, NULL, NULL);
            pairs[n++][1] = between_connect(b->to_port);
            b->connections = n;
        }
        if (b->half_open && n > 0 && pairs[0][1] >= 0) {
            reset(pairs[0][1]);
            pairs[0][1] = -1;
        }
        for (int i = 0; i < n; i++) {
            if (pairs[i][1] < 0)
                continue;
            carry(pairs[i][0], pairs[i][1], b->slow ? SLOWLY_CARRIED : MOST_CARRIED);
            carry(pairs[i][1], pairs[i][0], MOST_CARRIED);
        }
    }
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 2; k++)
            if (pairs[i][k] >= 0)
                close(pairs[i][k]);
    return NULL;
}

int between_begin(between *b, int to_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;

    *b = (between){.listener = socket(AF_INET, SOCK_STREAM, 0), .to_port = to_port};
    assert_int_equal(bind(b->listener, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(b->listener, 8), 0);
    assert_int_equal(getsockname(b->listener, (struct sockaddr *)&at, &size), 0);
    assert_int_equal(pthread_create(&b->thread, NULL, stand_between, b), 0);
    return ntohs(at.sin_port);
}

void between_end(between *b)
{
    b->stop = true;
    pthread_join(b->thread, NULL);
    close(b->listener);
}
