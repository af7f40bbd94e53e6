/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/zeromq_strangers.c - connections of strangers to a port that serves. */
#include "between.h"
#include "common/base/clock.h"
#include "common/wire/net.h"
#include "common/wire/zeromq.h"
#include "echo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include <cmocka.h>

static void noise(int port, uint32_t seed)
{
    uint8_t bytes[4096];
    int fd = between_connect(port);

    for (size_t i = 0; i < sizeof bytes; i++) {
        seed = seed * 1664525 + 1013904223;
        bytes[i] = (uint8_t)(seed >> 24);
    }
    (void)!send(fd, bytes, sizeof bytes, MSG_NOSIGNAL);
    close(fd);
}

/* ZeroMQ's own greeting, and then messages that are not weft's: no header, a header of the wrong
 * length, far too many frames. */
static void foreign_peer(const char *address)
{
    void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_DEALER);
    static const char small[] = "hello?";
    char large[200] = "WEFT";
    int linger = 200;

    assert_int_equal(zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger), 0);
    assert_int_equal(zmq_connect(socket, address), 0);
    zmq_send(socket, small, sizeof small, 0);
    zmq_send(socket, large, sizeof large, 0);
    zmq_send(socket, "", 0, 0);
    for (int i = 0; i < 2000; i++)
        zmq_send(socket, large, sizeof large, ZMQ_SNDMORE);
    zmq_send(socket, large, sizeof large, 0);
    zmq_close(socket);
    zmq_ctx_term(context);
}

static void strangers_at_the_port_leave_it_serving(void **state)
{
    int port = echo_free_port();
    char address[64];
    echo_server s;

    (void)state;
    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", port);
    echo_begin_server(&s, address);
    for (uint32_t seed = 1; seed <= 20; seed++)
        noise(port, seed);
    foreign_peer(address);
    echo_exchange(address, 50);
    echo_pause_server(&s);
    assert_true(wf_net_bad_messages(s.net) >= 4);
    echo_resume(&s);
    echo_end_server(&s);
}

/* The echo_client pings; the stranger has greeted as ZeroMQ does, and then says nothing. */
static void who_says_nothing_is_put_out(void **state)
{
    enum { WITHIN_S = 30 };
    static const uint8_t greeting[64] = {0xff, [9] = 0x7f, [10] = 3, [12] = 'N', 'U', 'L', 'L'};
    static const uint8_t ready[] = "\4\x1c\5READY\13Socket-Type\0\0\0\6DEALER";
    int port = echo_free_port(), fd;
    int64_t end_ns = wf_now_ns() + WITHIN_S * WF_NS_PER_S;
    char address[64];
    uint8_t byte;
    echo_server s;
    echo_client c;

    (void)state;
    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", port);
    echo_begin_server(&s, address);
    echo_begin_client(&c, address);
    echo_one_by_one(&c, 1, 3);
    fd = between_connect(port);
    assert_int_equal(send(fd, greeting, sizeof greeting, 0), sizeof greeting);
    assert_int_equal(send(fd, ready, sizeof ready - 1, 0), sizeof ready - 1);
    while (recv(fd, &byte, 1, MSG_DONTWAIT) != 0 && wf_now_ns() < end_ns)
        echo_poll_for(&c, WF_NS_PER_S / 20);
    assert_true(wf_now_ns() < end_ns);
    close(fd);
    echo_one_by_one(&c, 4, 3);
    assert_int_equal(wf_net_resent_bytes(c.ps), 0);
    echo_end_client(&c, 0);
    echo_end_server(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strangers_at_the_port_leave_it_serving),
        cmocka_unit_test(who_says_nothing_is_put_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
