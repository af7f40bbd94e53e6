/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/zeromq.c - messages over real sockets of this host, and strangers at the door. */
#include "common/wire/zeromq.h"
#include "between.h"
#include "common/base/clock.h"
#include "common/base/process.h"
#include "common/wire/mem.h"
#include "common/wire/net.h"
#include "common/wire/parts.h"
#include "common/wire/wait.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
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

/* The linker puts __wrap_zmq_msg_send in the place of ZeroMQ's own. Of this thread's next parts the
 * one with this number cannot be sent; 0: all can. */
static _Thread_local int fails_at;
int __real_zmq_msg_send(zmq_msg_t *part, void *socket, int flags);
int __wrap_zmq_msg_send(zmq_msg_t *part, void *socket, int flags);

int __wrap_zmq_msg_send(zmq_msg_t *part, void *socket, int flags)
{
    if (fails_at == 0 || --fails_at > 0)
        return __real_zmq_msg_send(part, socket, flags);
    errno = EAGAIN;
    return -1;
}

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

    wf_wait(t, count, -1, 5, 0);
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

static void resume(server *s)
{
    s->stop = false;
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

/* Its main thread stands still; ZeroMQ's goes on. */
static void pause_server(server *s)
{
    s->stop = true;
    pthread_join(s->thread, NULL);
}

static void begin_server(server *s, const char *address)
{
    wf_transport *t = NULL;
    wf_err err;

    *s = (server){0};
    assert_int_equal(wf_zmq_new(16, &s->zmq, NULL), WF_OK);
    s->net = new_net(ps0, 77);
    if (wf_zmq_listen(s->zmq, address, &t, &err) != WF_OK)
        fail_msg("%s", err.what);
    wf_net_listen(s->net, &t);
    resume(s);
}

static void end_server(server *s)
{
    pause_server(s);
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

/* The pushes of these steps come back, whole and in order, within the deadline. */
static void take_echoes(wf_net *n, uint32_t next, uint32_t end)
{
    int64_t end_ns = wf_now_ns() + DEADLINE_S * WF_NS_PER_S;
    wf_event ev;

    while (next < end && wf_now_ns() < end_ns) {
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
    assert_int_equal(next, end);
}

/* A worker that has dialled the server. */
typedef struct client {
    wf_zmq *zmq;
    wf_net *net;
    wf_peer *ps;
} client;

static void begin_client(client *c, const char *address)
{
    wf_transport *t = NULL;

    *c = (client){.net = new_net((wf_task){WF_ROLE_WORKER, 1}, wf_now_ns() | 1)};
    assert_int_equal(wf_zmq_new(4, &c->zmq, NULL), WF_OK);
    assert_int_equal(wf_zmq_dial(c->zmq, address, &t, NULL), WF_OK);
    assert_int_equal(wf_net_dial(c->net, ps0, address, &t, &c->ps, NULL), WF_OK);
}

static void end_client(client *c, int linger_ms)
{
    wf_net_free(&c->net, linger_ms);
    wf_zmq_free(&c->zmq);
}

static void push_all(client *c, uint32_t next, uint32_t end)
{
    for (; next < end; next++)
        push(c->net, c->ps, next);
}

static void exchange(const char *address, uint32_t count)
{
    client c;

    begin_client(&c, address);
    push_all(&c, 1, count + 1);
    take_echoes(c.net, 1, count + 1);
    end_client(&c, 100);
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

/* ---- a connection that only one side knows to be broken ---- */

/* A server, and a client that has dialled what stands between them. */
typedef struct line {
    server s;
    between b;
    client c;
} line;

static void begin_line(line *l)
{
    int port = free_port();
    char address[64];

    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", port);
    begin_server(&l->s, address);
    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", between_begin(&l->b, port));
    begin_client(&l->c, address);
}

static void end_line(line *l)
{
    end_client(&l->c, 0);
    between_end(&l->b);
    end_server(&l->s);
}

/* One push at a time, each as soon as the one before has come back; gives the longest wait. */
static int64_t one_by_one(client *c, uint32_t first, uint32_t count)
{
    int64_t longest_ns = 0, end_ns = wf_now_ns() + DEADLINE_S * WF_NS_PER_S;
    wf_event ev;

    for (uint32_t step = first; step < first + count; step++) {
        int64_t began_ns = wf_now_ns();
        bool back = false;

        push(c->net, c->ps, step);
        while (!back && wf_now_ns() < end_ns) {
            wf_net_poll(c->net, wf_now_ns());
            while (wf_net_event(c->net, wf_now_ns(), &ev)) {
                assert_int_not_equal(ev.kind, WF_EV_DOWN); /* the link outlives its connection */
                if (ev.kind != WF_EV_MESSAGE)
                    continue;
                check_echo(ev.msg, step);
                wf_net_free_msg(c->net, &ev.msg);
                back = true;
            }
            wf_net_flush(c->net, wf_now_ns());
            if (!back)
                wait_for(c->net);
        }
        assert_true(back);
        if (wf_now_ns() - began_ns > longest_ns)
            longest_ns = wf_now_ns() - began_ns;
    }
    return longest_ns;
}

static void a_connection_that_one_side_has_lost_is_up_again_within_2_s(void **state)
{
    int64_t waited_ns;
    line l;

    (void)state;
    begin_line(&l);
    one_by_one(&l.c, 1, 100);
    l.b.half_open = true;
    waited_ns = one_by_one(&l.c, 101, 100);
    assert_in_range(waited_ns / WF_NS_PER_MS, 0, 2500); /* 2 s, and a busy machine */
    assert_true(l.b.connections > 1);
    end_line(&l);
}

/* Polls, and takes no event. */
static void poll_for(client *c, int64_t ns)
{
    for (int64_t end_ns = wf_now_ns() + ns; wf_now_ns() < end_ns; wait_for(c->net))
        wf_net_poll(c->net, wf_now_ns());
}

/* A serving side that computes: its I/O thread answers, so nothing is broken, and nothing is sent
 * twice however long it takes. */
static void a_peer_that_reads_nothing_for_3_s_costs_one_transfer(void **state)
{
    char address[64];
    server s;
    client c;

    (void)state;
    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", free_port());
    begin_server(&s, address);
    begin_client(&c, address);
    one_by_one(&c, 1, 3);
    pause_server(&s);
    push_all(&c, 4, 40);
    poll_for(&c, 3 * WF_NS_PER_S);
    resume(&s);
    take_echoes(c.net, 4, 40);
    assert_int_equal(wf_net_resent_bytes(c.ps), 0);
    end_client(&c, 0);
    end_server(&s);
}

/* ---- strangers ---- */

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
    pause_server(&s);
    assert_true(wf_net_bad_messages(s.net) >= 4);
    resume(&s);
    end_server(&s);
}

/* ---- a message that ZeroMQ takes a part of ---- */

typedef struct ends {
    wf_zmq *zmq;
    wf_transport *router, *dealer[2];
    wf_route to[2]; /* the router's ways to the dealers */
    wf_msg_pool pool;
} ends;

/* Sends a message of this step whose part `fails` (0: none) cannot go. Without a connection none
 * can, until there is one. */
static void send_step(ends *e, wf_transport *t, const wf_route *to, uint32_t step, int fails)
{
    int64_t end_ns = wf_now_ns() + DEADLINE_S * WF_NS_PER_S;
    wf_buf *b = wf_buf_new(PAYLOAD);
    wf_msg *m = NULL;
    bool sent = false;

    assert_non_null(b);
    memset(b->data, (int)step, PAYLOAD);
    assert_int_equal(wf_msg_new(&e->pool, WF_PUSH, &m, NULL), WF_OK);
    m->head.step = step;
    assert_int_equal(wf_msg_add_frame(m, b, b->data, PAYLOAD, NULL), WF_OK);
    wf_buf_unref(&b);
    fails_at = fails;
    while (!sent && wf_now_ns() < end_ns && (fails == 0 || fails_at > 0))
        sent = t->ops->send(t, to, m, NULL) == WF_OK;
    assert_int_equal(sent, fails == 0);
    assert_int_equal(fails_at, 0); /* the part was reached */
    wf_msg_free(&e->pool, &m);
}

/* The next message with a payload is that of this step, whole. Gives where it came from. */
static wf_route take_step(ends *e, wf_transport *t, uint32_t step)
{
    int64_t end_ns = wf_now_ns() + DEADLINE_S * WF_NS_PER_S;
    wf_route from;
    wf_msg *m;

    for (m = NULL; !m && wf_now_ns() < end_ns; wf_wait(&t, 1, -1, 5, 0)) {
        m = t->ops->receive(t, &e->pool, &from);
        if (m && m->payload_bytes == 0)
            wf_msg_free(&e->pool, &m);
    }
    assert_non_null(m);
    assert_int_equal(m->head.step, step);
    assert_int_equal(m->n_frames, 1);
    assert_int_equal(m->payload_bytes, PAYLOAD);
    assert_int_equal(m->frames[0].data[PAYLOAD - 1], step);
    wf_msg_free(&e->pool, &m);
    return from;
}

static void begin_ends(ends *e)
{
    static const wf_route only;
    char address[64];

    *e = (ends){0};
    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", free_port());
    assert_int_equal(wf_zmq_new(16, &e->zmq, NULL), WF_OK);
    assert_int_equal(wf_zmq_listen(e->zmq, address, &e->router, NULL), WF_OK);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(wf_zmq_dial(e->zmq, address, &e->dealer[i], NULL), WF_OK);
        send_step(e, e->dealer[i], &only, i, 0);
        e->to[i] = take_step(e, e->router, i);
    }
}

static void end_ends(ends *e)
{
    e->dealer[0]->ops->close(e->dealer[0], 0);
    e->dealer[1]->ops->close(e->dealer[1], 0);
    e->router->ops->close(e->router, 0);
    wf_msg_pool_close(&e->pool);
    wf_zmq_free(&e->zmq);
}

/* ZeroMQ has the first part when the next cannot go: the parts of the next message must not become
 * its tail. */
static void what_follows_a_torn_message_arrives_whole(void **state)
{
    static const wf_route only;
    ends e;

    (void)state;
    begin_ends(&e);
    send_step(&e, e.dealer[0], &only, 10, 1);
    send_step(&e, e.dealer[0], &only, 11, 2);
    send_step(&e, e.dealer[0], &only, 12, 0);
    take_step(&e, e.router, 12);
    for (int part = 1; part <= 3; part++) {
        uint32_t step = 20 + 10 * (uint32_t)part;

        send_step(&e, e.router, &e.to[0], step, part);
        send_step(&e, e.router, &e.to[1], step + 1, 0);
        take_step(&e, e.dealer[1], step + 1);
        send_step(&e, e.router, &e.to[0], step + 2, 0);
        take_step(&e, e.dealer[0], step + 2);
    }
    end_ends(&e);
}

/* The client pings; the stranger has greeted as ZeroMQ does, and then says nothing. */
static void who_says_nothing_is_put_out(void **state)
{
    enum { WITHIN_S = 30 };
    static const uint8_t greeting[64] = {0xff, [9] = 0x7f, [10] = 3, [12] = 'N', 'U', 'L', 'L'};
    static const uint8_t ready[] = "\4\x1c\5READY\13Socket-Type\0\0\0\6DEALER";
    int port = free_port(), fd;
    int64_t end_ns = wf_now_ns() + WITHIN_S * WF_NS_PER_S;
    char address[64];
    uint8_t byte;
    server s;
    client c;

    (void)state;
    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", port);
    begin_server(&s, address);
    begin_client(&c, address);
    one_by_one(&c, 1, 3);
    fd = between_connect(port);
    assert_int_equal(send(fd, greeting, sizeof greeting, 0), sizeof greeting);
    assert_int_equal(send(fd, ready, sizeof ready - 1, 0), sizeof ready - 1);
    while (recv(fd, &byte, 1, MSG_DONTWAIT) != 0 && wf_now_ns() < end_ns)
        poll_for(&c, WF_NS_PER_S / 20);
    assert_true(wf_now_ns() < end_ns);
    close(fd);
    one_by_one(&c, 4, 3);
    assert_int_equal(wf_net_resent_bytes(c.ps), 0);
    end_client(&c, 0);
    end_server(&s);
}

/* What arrives at the last of many sockets ends the wait, with memory among them. */
static void any_number_of_sockets_is_waited_for(void **state)
{
    enum { MANY = 150 };
    wf_transport *t[MANY + 1] = {0}, *serving = NULL;
    wf_mem *mem = NULL;
    wf_msg_pool pool = {0};
    wf_zmq *zmq = NULL;
    wf_route from = {0};
    wf_msg *m = NULL, *got = NULL;
    char address[64];
    int64_t began_ns, end_ns = wf_now_ns() + DEADLINE_S * WF_NS_PER_S;

    (void)state;
    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", free_port());
    assert_int_equal(wf_process_raise_files(NULL), WF_OK);
    assert_int_equal(wf_zmq_new(2 * MANY + 8, &zmq, NULL), WF_OK);
    assert_int_equal(wf_zmq_listen(zmq, address, &serving, NULL), WF_OK);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(wf_zmq_dial(zmq, address, &t[i], NULL), WF_OK);
    assert_int_equal(wf_mem_new(&mem, NULL), WF_OK);
    assert_int_equal(wf_mem_dial(mem, "nobody", &t[MANY], NULL), WF_OK);
    assert_int_equal(wf_msg_new(&pool, WF_PING, &m, NULL), WF_OK);
    while (!got && wf_now_ns() < end_ns) { /* until the last connection is there */
        (void)!t[MANY - 1]->ops->send(t[MANY - 1], &from, m, NULL);
        wf_wait(&serving, 1, -1, 10, 0);
        got = serving->ops->receive(serving, &pool, &from);
    }
    assert_non_null(got);
    wf_wait(t, MANY + 1, -1, 50, 0); /* nothing is there yet */
    assert_int_equal(serving->ops->send(serving, &from, m, NULL), WF_OK);
    began_ns = wf_now_ns();
    wf_wait(t, MANY + 1, -1, 5000, 0);
    assert_in_range((wf_now_ns() - began_ns) / WF_NS_PER_MS, 0, 2000);
    wf_msg_free(&pool, &got);
    got = t[MANY - 1]->ops->receive(t[MANY - 1], &pool, &from);
    assert_non_null(got);
    wf_msg_free(&pool, &got);
    wf_msg_free(&pool, &m);
    for (int i = 0; i <= MANY; i++)
        t[i]->ops->close(t[i], 0);
    serving->ops->close(serving, 0);
    wf_msg_pool_close(&pool);
    wf_zmq_free(&zmq);
    wf_mem_free(&mem);
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
    assert_int_equal(wf_zmq_new(4, &zmq, NULL), WF_OK);
    assert_int_equal(wf_zmq_listen(zmq, address, &first, &err), WF_OK);
    assert_int_equal(wf_zmq_listen(zmq, address, &second, &err), WF_EXISTS);
    assert_non_null(strstr(err.what, address));
    assert_non_null(strstr(err.what, who));
    first->ops->close(first, 0);
    wf_zmq_free(&zmq);
}

/* The answers to pings wait behind what is sent, and the server says nothing else meanwhile. */
static void an_upload_of_5_s_is_not_broken_off(void **state)
{
    enum { PUSHES = 250 };
    line l;

    (void)state;
    begin_line(&l);
    one_by_one(&l.c, 1, 3);
    pause_server(&l.s);
    l.b.slow = true;
    push_all(&l.c, 4, 4 + PUSHES);
    poll_for(&l.c, 4 * WF_NS_PER_S);
    assert_int_equal(l.b.connections, 1);
    resume(&l.s);
    take_echoes(l.c.net, 4, 4 + PUSHES);
    assert_int_equal(l.b.connections, 1);
    assert_int_equal(wf_net_resent_bytes(l.c.ps), 0);
    end_line(&l);
}

static void an_address_that_is_none_is_refused(void **state)
{
    wf_transport *t = NULL;
    wf_zmq *zmq = NULL;
    wf_err err;

    (void)state;
    assert_int_equal(wf_zmq_new(4, &zmq, NULL), WF_OK);
    assert_int_equal(wf_zmq_listen(zmq, "tcp//127.0.0.1", &t, &err), WF_INVALID);
    assert_int_equal(wf_zmq_dial(zmq, "carrier-pigeon://x", &t, &err), WF_INVALID);
    assert_non_null(strstr(err.hint, "tcp://HOST:PORT"));
    wf_zmq_free(&zmq);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thousand_messages_come_back_over_tcp),
        cmocka_unit_test(a_thousand_messages_come_back_over_ipc),
        cmocka_unit_test(a_connection_that_one_side_has_lost_is_up_again_within_2_s),
        cmocka_unit_test(a_peer_that_reads_nothing_for_3_s_costs_one_transfer),
        cmocka_unit_test(an_upload_of_5_s_is_not_broken_off),
        cmocka_unit_test(what_follows_a_torn_message_arrives_whole),
        cmocka_unit_test(who_says_nothing_is_put_out),
        cmocka_unit_test(strangers_at_the_port_leave_it_serving),
        cmocka_unit_test(any_number_of_sockets_is_waited_for),
        cmocka_unit_test(a_port_in_use_says_by_whom),
        cmocka_unit_test(an_address_that_is_none_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
