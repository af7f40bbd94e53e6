/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/stream.c - TCP connections of weft's own beside ZeroMQ's: used once both sides know
 * each other, left when they break, and made again; nothing is slept through; strangers are put
 * out.
 */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/wire/grammar.h"
#include "common/wire/net.h"
#include "common/wire/stream_state.h"
#include "common/wire/wait.h"
#include "numbered.h"
#include "tests/kit/memnet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MESSAGES = 3000 };

static stream_transport *stream_of(const side *s)
{
    return (stream_transport *)s->t;
}

/* An end without shared memory. */
static void open_end(side *s, bool listens)
{
    *s = (side){0};
    assert_int_equal(wf_wires_new(4, &s->w, NULL), WF_OK);
    wf_wires_share(s->w, false);
    assert_int_equal(listens ? wf_wires_listen(s->w, address, &s->t, NULL)
                             : wf_wires_dial(s->w, address, &s->t, NULL),
                     WF_OK);
}

/* ---- the other side, in a thread ---- */

typedef struct echo {
    side s;
    pthread_t thread;
    atomic_bool ends;
} echo;

static void *run_echo(void *arg)
{
    echo *e = arg;

    while (!atomic_load(&e->ends)) {
        wf_route from = {0};
        wf_msg *m = e->s.t->ops->receive(e->s.t, &e->s.pool, &from);

        if (!m) {
            e->s.t->ops->tend(e->s.t, wf_now_ns());
            wf_wait(&e->s.t, 1, -1, 20, NULL);
            continue;
        }
        (void)!e->s.t->ops->send(e->s.t, &from, m, NULL);
        wf_msg_free(&e->s.pool, &m);
    }
    return NULL;
}

static void open_echo(echo *e)
{
    open_end(&e->s, true);
    atomic_init(&e->ends, false);
    assert_int_equal(pthread_create(&e->thread, NULL, run_echo, e), 0);
}

static void close_echo(echo *e)
{
    atomic_store(&e->ends, true);
    pthread_join(e->thread, NULL);
    close_side(&e->s);
}

static bool is_up_now(const stream_transport *t)
{
    return t->n == 1 && t->slots[0].c->state == WF_STREAM_UP;
}

static bool is_up(const side *s)
{
    return is_up_now(stream_of(s));
}

/* Sends message after message until there is a connection; false after the deadline. */
static bool gets_up(side *s, uint32_t *i)
{
    int64_t end_ns = wf_now_ns() + DEADLINE_S * WF_NS_PER_S;

    while (!is_up(s) && wf_now_ns() < end_ns) {
        stream_of(s)->try_at_ns = 0; /* a refusal is not waited out */
        if (!exchange(s, (*i)++, 1))
            return false;
    }
    return is_up(s);
}

/* Nor is a rate kept within a host. */
static void messages_take_the_connection(void **state)
{
    char control[16] = "";
    socklen_t size = sizeof control - 1;
    uint32_t i = 0;
    echo other;
    side s;

    (void)state;
    open_echo(&other);
    open_end(&s, false);
    assert_true(gets_up(&s, &i));
    assert_true(exchange(&s, i, MESSAGES));
    assert_true(is_up(&s));
    assert_int_equal(s.t->bad_messages, 0);
    assert_int_equal(
        getsockopt(stream_of(&s)->slots[0].c->fd, IPPROTO_TCP, TCP_CONGESTION, control, &size), 0);
    assert_string_equal(control, "reno");
    close_side(&s);
    close_echo(&other);
}

/* ---- a connection that breaks ---- */

static void a_broken_connection_is_made_again(void **state)
{
    uint32_t i = 0;
    echo other;
    side s;

    (void)state;
    open_echo(&other);
    open_end(&s, false);
    for (int k = 0; k < 5; k++) {
        bool fresh = false;

        assert_true(gets_up(&s, &i));
        shutdown(stream_of(&s)->slots[0].c->fd, SHUT_RDWR);
        for (int64_t end_ns = wf_now_ns() + DEADLINE_S * WF_NS_PER_S;
             !fresh && wf_now_ns() < end_ns;) {
            assert_null(s.t->ops->receive(s.t, &s.pool, &(wf_route){0}));
            fresh = s.t->ops->tend(s.t, wf_now_ns());
            wf_wait(&s.t, 1, -1, 10, NULL);
        }
        assert_true(fresh); /* the link is told to look what was lost */
        assert_true(exchange(&s, i++, 1));
    }
    close_side(&s);
    close_echo(&other);
}

/* ---- a net above connections that are cut ---- */

static wf_net *new_net(wf_memnet *ids, wf_task self, uint64_t incarnation)
{
    wf_net_conf conf = wf_memnet_conf(ids, self, incarnation);

    conf.probe_ns = 20 * WF_NS_PER_MS;
    return wf_memnet_new(&conf);
}

static void poll_both(wf_net *a, wf_net *b)
{
    wf_transport *const *transports;
    size_t count;

    wf_net_poll(a, wf_now_ns());
    wf_net_poll(b, wf_now_ns());
    transports = wf_net_transports(b, &count);
    wf_wait(transports, count, -1, 1, NULL);
}

/* Every so many messages the connection is cut with some on their way: the other side gets each of
 * them once, in order. */
static void nothing_is_lost_or_doubled_when_connections_are_cut(void **state)
{
    enum { ALL = 1200, AHEAD = 40, EACH_CUT = 100 };
    int64_t end_ns = wf_now_ns() + DEADLINE_S * WF_NS_PER_S;
    const wf_task ps0 = {WF_ROLE_PS, 0};
    uint32_t sent = 0, taken = 0, cuts = 0;
    wf_peer *p = NULL;
    wf_msg_pool pool = {0};
    wf_net *listens, *dials;
    stream_transport *t;
    side s, near;
    wf_memnet ids;
    wf_event ev;

    (void)state;
    wf_memnet_init(&ids, "demo");
    open_end(&near, true);
    open_end(&s, false);
    t = stream_of(&s);
    listens = new_net(&ids, ps0, 1);
    dials = new_net(&ids, (wf_task){WF_ROLE_WORKER, 0}, 2);
    wf_net_listen(listens, &near.t);
    assert_int_equal(wf_net_dial(dials, ps0, address, &s.t, &p, NULL), WF_OK);
    while (taken < ALL && wf_now_ns() < end_ns) {
        uint32_t most =
            WF_MIN((uint32_t)ALL, (cuts + 1) * EACH_CUT + AHEAD); /* until the next cut */

        t->try_at_ns = 0; /* what ended is not waited out */
        if (sent == most) /* and asked for again, as by the next message */
            wf_stream_want(t, WF_PUSH);
        for (; p->up && sent < most && sent < taken + AHEAD; sent++) {
            wf_msg *m = make(&pool, NULL, sent);

            assert_int_equal(wf_net_send(dials, p, WF_LANE_DATA, 0, &m, NULL), WF_OK);
        }
        poll_both(dials, listens);
        while (wf_net_event(dials, wf_now_ns(), &ev))
            assert_int_equal(ev.kind, WF_EV_UP);
        while (wf_net_event(listens, wf_now_ns(), &ev)) {
            if (ev.kind != WF_EV_MESSAGE)
                continue;
            assert_true(is_whole(ev.msg, taken));
            taken++;
            wf_net_free_msg(listens, &ev.msg);
        }
        if (taken >= (cuts + 1) * EACH_CUT && is_up_now(t)) {
            shutdown(t->slots[0].c->fd, SHUT_RDWR);
            cuts++;
        }
    }
    assert_int_equal(taken, ALL);
    assert_in_range(cuts, ALL / EACH_CUT - 1, ALL / EACH_CUT);
    wf_net_free(&dials, 0);
    wf_net_free(&listens, 0);
    wf_msg_pool_close(&pool);
    wf_wires_free(&s.w);
    wf_wires_free(&near.w);
    wf_memnet_close(&ids);
}

/* ---- without ---- */

static void either_side_may_do_without(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        echo other;
        side s;

        setenv("WEFT_STREAMS", "0", 1);
        if (k == 0)
            open_echo(&other);
        else
            open_end(&s, false);
        unsetenv("WEFT_STREAMS");
        if (k == 0)
            open_end(&s, false);
        else
            open_echo(&other);
        assert_true(exchange(&s, 0, 100));
        if (k == 0)
            assert_int_equal(stream_of(&s)->n, 0);
        close_side(&s);
        close_echo(&other);
    }
}

/* An ask that nobody answers is given up, and the next comes much later. */
static void an_ask_without_an_answer_is_given_up(void **state)
{
    wf_route to = {0};
    stream_transport *t;
    echo other;
    side s;

    (void)state;
    setenv("WEFT_STREAMS", "0", 1);
    open_echo(&other); /* sends the ask back, which is no answer */
    unsetenv("WEFT_STREAMS");
    open_end(&s, false);
    t = stream_of(&s);
    for (uint32_t i = 1; !t->asked && i < 100; i++) /* a link that comes up behind the ask */
        assert_true(send_soon(&s, &to, i));
    assert_true(t->asked);
    wf_stream_end_late(t, t->asked_ns + 999 * WF_NS_PER_MS, false);
    assert_true(t->asked);
    wf_stream_end_late(t, t->asked_ns + 1000 * WF_NS_PER_MS, false);
    assert_false(t->asked);
    assert_true(t->try_at_ns > t->asked_ns + 20 * WF_NS_PER_S);
    assert_true(send_soon(&s, &to, 100));
    assert_false(t->asked);
    close_side(&s);
    close_echo(&other);
}

/* ---- strangers ---- */

static int connect_to(uint16_t port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

static bool is_put_out(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char byte;

    return poll(&p, 1, 1000 * DEADLINE_S) == 1 && recv(fd, &byte, 1, 0) <= 0;
}

static void strangers_are_put_out(void **state)
{
    uint32_t i = 0;
    int talks, silent;
    echo other;
    side s;

    (void)state;
    open_echo(&other);
    open_end(&s, false);
    assert_true(gets_up(&s, &i)); /* only now is there a port */
    talks = connect_to(stream_of(&other.s)->port);
    silent = connect_to(stream_of(&other.s)->port);
    assert_int_equal(send(talks, "GET / HTTP/1.1\r\nHost: weft\r\n\r\n", 30, 0), 30);
    assert_true(is_put_out(talks));
    assert_true(is_put_out(silent));
    assert_true(exchange(&s, i, 10));
    assert_true(is_up(&s));
    close(talks);
    close(silent);
    close_side(&s);
    close_echo(&other);
}

static void ask_for_a_port(side *s)
{
    wf_msg *m = NULL;

    assert_int_equal(wf_msg_new(&s->pool, WF_STREAM_ASK, &m, NULL), WF_OK);
    assert_true(wf_stream_take_note(stream_of(s), &s->pool, &(wf_route){0}, &m));
    assert_null(m);
}

/* Without a descriptor for whoever connects, no wait may end at once again and again. */
static void a_port_without_descriptors_is_closed_and_opened_again(void **state)
{
    stream_transport *t;
    struct rlimit before, none;
    int stranger;
    side s;

    (void)state;
    open_end(&s, true);
    t = stream_of(&s);
    ask_for_a_port(&s);
    stranger = connect_to(t->port);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)dup(stranger); /* the lowest number that was free */
    close((int)none.rlim_cur);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    wf_stream_look(t);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(t->door, -1);
    assert_int_equal(t->n, 0);
    assert_true(is_put_out(stranger));
    close(stranger);
    ask_for_a_port(&s);
    assert_true(t->door >= 0);
    stranger = connect_to(t->port);
    wf_stream_look(t);
    assert_int_equal(t->n, 1);
    close(stranger);
    close_side(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_take_the_connection),
        cmocka_unit_test(a_broken_connection_is_made_again),
        cmocka_unit_test(nothing_is_lost_or_doubled_when_connections_are_cut),
        cmocka_unit_test(either_side_may_do_without),
        cmocka_unit_test(an_ask_without_an_answer_is_given_up),
        cmocka_unit_test(strangers_are_put_out),
        cmocka_unit_test(a_port_without_descriptors_is_closed_and_opened_again),
    };

    return cmocka_run_group_tests(tests, set_up_tcp, tear_down);
}
