/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/zeromq.c - messages over real sockets of this host, and strangers at the door. */
#include "common/wire/zeromq.h"
#include "common/base/clock.h"
#include "common/wire/net.h"
#include "common/wire/parts.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include <cmocka.h>

enum { MESSAGES = 1000, PAYLOAD = 8 << 10, DEADLINE_S = 20 };
static const wf_task ps0 = {WF_ROLE_PS, 0};

/* A port that was free a moment ago. */
static int free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    close(fd);
    return ntohs(at.sin_port);
}

static wf_net *new_net(wf_task self, uint64_t incarnation)
{
    wf_net_conf conf = wf_net_defaults();
    wf_net *n = NULL;

    conf.self = self;
    conf.incarnation = incarnation;
    conf.cluster = "demo";
    conf.credit_bytes = 1 << 20;
    assert_int_equal(wf_net_new(&conf, &n, NULL), WF_OK);
    return n;
}

static void wait_for(wf_net *n)
{
    size_t count;
    wf_transport *const *t = wf_net_transports(n, &count);

    wf_zmq_wait(t, count, -1, 5, 0);
}

/* ---- the serving side: every push is answered with its own payload as weights ---- */

typedef struct server {
    wf_zmq *zmq;
    wf_net *net;
    pthread_t thread;
    _Atomic bool stop;
} server;

static void echo(wf_net *n, wf_event *ev)
{
    wf_part part = {.slice = ev->msg->head.step, .bytes = ev->msg->frames[0].bytes};
    wf_msg *m = NULL;

    if (wf_net_msg(n, WF_WEIGHTS, &m, NULL) != WF_OK)
        return;
    m->head.step = ev->msg->head.step;
    part.checksum = wf_part_checksum(ev->msg->frames[0].data, part.bytes);
    if (wf_msg_add_frame(m, ev->msg->frames[0].buf, ev->msg->frames[0].data, part.bytes, NULL) ==
            WF_OK &&
        wf_parts_put(m, &part, 1, NULL) == WF_OK)
        (void)!wf_net_send(n, ev->peer, WF_LANE_DATA, ev->msg->head.step, &m, NULL);
    wf_net_free_msg(n, &m);
}

static void *serve(void *arg)
{
    server *s = arg;
    wf_event ev;

    while (!s->stop) {
        wf_net_poll(s->net, wf_now_ns());
        while (wf_net_event(s->net, wf_now_ns(), &ev)) {
            if (ev.kind != WF_EV_MESSAGE)
                continue;
            if (ev.msg->head.kind == WF_PUSH && ev.msg->n_frames == 1)
                echo(s->net, &ev);
            wf_net_free_msg(s->net, &ev.msg);
        }
        wf_net_flush(s->net, wf_now_ns());
        wait_for(s->net);
    }
    return NULL;
}

static void begin_server(server *s, const char *address)
{
    wf_transport *t = NULL;
    wf_err err;

    *s = (server){0};
    assert_int_equal(wf_zmq_new(&s->zmq, NULL), WF_OK);
    s->net = new_net(ps0, 77);
    if (wf_zmq_listen(s->zmq, address, &t, &err) != WF_OK)
        fail_msg("%s", err.what);
    wf_net_listen(s->net, &t);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void end_server(server *s)
{
    s->stop = true;
    pthread_join(s->thread, NULL);
    wf_net_free(&s->net, 100);
    wf_zmq_free(&s->zmq);
}

/* ---- the asking side ---- */

static void push(wf_net *n, wf_peer *to, uint32_t step)
{
    wf_buf *b = wf_buf_new(PAYLOAD);
    wf_part part = {.slice = step, .bytes = PAYLOAD};
    wf_msg *m = NULL;

    assert_non_null(b);
    for (uint32_t i = 0; i < PAYLOAD / sizeof(uint32_t); i++)
        ((uint32_t *)b->data)[i] = step * 31 + i;
    assert_int_equal(wf_net_msg(n, WF_PUSH, &m, NULL), WF_OK);
    m->head.step = step;
    assert_int_equal(wf_msg_add_frame(m, b, b->data, PAYLOAD, NULL), WF_OK);
    assert_int_equal(wf_parts_put(m, &part, 1, NULL), WF_OK);
    assert_int_equal(wf_net_send(n, to, WF_LANE_DATA, step, &m, NULL), WF_OK);
    wf_buf_unref(&b);
}

static void check_echo(const wf_msg *m, uint32_t step)
{
    wf_part parts[WF_MAX_PARTS];
    const uint32_t *data;
    uint32_t n = 0;

    assert_int_equal(m->head.kind, WF_WEIGHTS);
    assert_int_equal(m->head.step, step);
    assert_int_equal(wf_parts_get(m, parts, &n, NULL), WF_OK);
    assert_int_equal(n, 1);
    assert_int_equal(parts[0].bytes, PAYLOAD);
    data = wf_part_data(m, &parts[0]);
    assert_int_equal(data[0], step * 31);
    assert_int_equal(data[PAYLOAD / sizeof(uint32_t) - 1],
                     step * 31 + PAYLOAD / sizeof(uint32_t) - 1);
}

/* All pushes come back, whole and in order, within the deadline. */
static void exchange(const char *address, uint32_t count)
{
    int64_t end_ns = wf_now_ns() + DEADLINE_S * WF_NS_PER_S;
    wf_net *n = new_net((wf_task){WF_ROLE_WORKER, 1}, wf_now_ns() | 1);
    wf_zmq *zmq = NULL;
    wf_transport *t = NULL;
    wf_peer *ps = NULL;
    uint32_t next = 1;
    wf_event ev;

    assert_int_equal(wf_zmq_new(&zmq, NULL), WF_OK);
    assert_int_equal(
        wf_zmq_dial(zmq, address, (wf_task){WF_ROLE_WORKER, 1}, wf_now_ns() | 1, 0, &t, NULL),
        WF_OK);
    assert_int_equal(wf_net_dial(n, ps0, address, &t, &ps, NULL), WF_OK);
    for (uint32_t step = 1; step <= count; step++)
        push(n, ps, step);
    while (next <= count && wf_now_ns() < end_ns) {
        wf_net_poll(n, wf_now_ns());
        while (wf_net_event(n, wf_now_ns(), &ev)) {
            if (ev.kind != WF_EV_MESSAGE)
                continue;
            check_echo(ev.msg, next++);
            wf_net_free_msg(n, &ev.msg);
        }
        wf_net_flush(n, wf_now_ns());
        wait_for(n);
    }
    assert_int_equal(next, count + 1);
    wf_net_free(&n, 100);
    wf_zmq_free(&zmq);
}

static void a_thousand_messages_come_back(const char *address)
{
    server s;

    begin_server(&s, address);
    exchange(address, MESSAGES);
    end_server(&s);
}

static void a_thousand_messages_come_back_over_tcp(void **state)
{
    char address[64];

    (void)state;
    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", free_port());
    a_thousand_messages_come_back(address);
}

static void a_thousand_messages_come_back_over_ipc(void **state)
{
    char folder[] = "/tmp/weft-unit-XXXXXX", address[80], path[64];

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/ps", folder);
    snprintf(address, sizeof address, "ipc://%s", path);
    a_thousand_messages_come_back(address);
    unlink(path);
    rmdir(folder);
}

/* ---- strangers ---- */

static int raw_connection(int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void noise(int port, uint32_t seed)
{
    uint8_t bytes[4096];
    int fd = raw_connection(port);

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
    int port = free_port();
    char address[64];
    server s;

    (void)state;
    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", port);
    begin_server(&s, address);
    for (uint32_t seed = 1; seed <= 20; seed++)
        noise(port, seed);
    foreign_peer(address);
    exchange(address, 50);
    s.stop = true;
    pthread_join(s.thread, NULL);
    assert_true(wf_net_bad_messages(s.net) >= 4);
    wf_net_free(&s.net, 0);
    wf_zmq_free(&s.zmq);
}

static void a_port_in_use_says_by_whom(void **state)
{
    char address[64], who[32];
    wf_transport *first = NULL, *second = NULL;
    wf_zmq *zmq = NULL;
    wf_err err;

    (void)state;
    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", free_port());
    snprintf(who, sizeof who, "process %d (", (int)getpid());
    assert_int_equal(wf_zmq_new(&zmq, NULL), WF_OK);
    assert_int_equal(wf_zmq_listen(zmq, address, &first, &err), WF_OK);
    assert_int_equal(wf_zmq_listen(zmq, address, &second, &err), WF_EXISTS);
    assert_non_null(strstr(err.what, address));
    assert_non_null(strstr(err.what, who));
    first->ops->close(first, 0);
    wf_zmq_free(&zmq);
}

static void an_address_that_is_none_is_refused(void **state)
{
    wf_transport *t = NULL;
    wf_zmq *zmq = NULL;
    wf_err err;

    (void)state;
    assert_int_equal(wf_zmq_new(&zmq, NULL), WF_OK);
    assert_int_equal(wf_zmq_listen(zmq, "tcp//127.0.0.1", &t, &err), WF_INVALID);
    assert_int_equal(wf_zmq_dial(zmq, "carrier-pigeon://x", ps0, 1, 0, &t, &err), WF_INVALID);
    assert_non_null(strstr(err.mend, "tcp://HOST:PORT"));
    wf_zmq_free(&zmq);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thousand_messages_come_back_over_tcp),
        cmocka_unit_test(a_thousand_messages_come_back_over_ipc),
        cmocka_unit_test(strangers_at_the_port_leave_it_serving),
        cmocka_unit_test(a_port_in_use_says_by_whom),
        cmocka_unit_test(an_address_that_is_none_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
