/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/wires.c - each kind of transport by its address; waiting for any of them; a net that
 * listens over several; memory of a transport's own. */
#include "common/wire/wires.h"
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/wire/mem.h"
#include "common/wire/net.h"
#include "common/wire/wait.h"
#include "tests/kit/memnet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DEADLINE_S = 20, ROUNDS = 3000 };
static const wf_task ps0 = {WF_ROLE_PS, 0};

static char folder[] = "/tmp/weft-wires-XXXXXX", ipc[64], tcp[64];
static const char *const addresses[] = {"mem://here", ipc, tcp};

static int free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&at, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    close(fd);
    return ntohs(at.sin_port);
}

static int set_up(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(ipc, sizeof ipc, "ipc://%s/socket", folder);
    snprintf(tcp, sizeof tcp, "tcp://127.0.0.1:%d", free_port());
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(ipc + strlen("ipc://"));
    return rmdir(folder);
}

/* "ipc" and "tcp" stand for those of this process. */
static const char *full(const char *address)
{
    return strcmp(address, "ipc") == 0 ? ipc : strcmp(address, "tcp") == 0 ? tcp : address;
}

/* ---- one kind and another ---- */

static wf_msg *ping(wf_msg_pool *pool, uint32_t step)
{
    wf_msg *m = NULL;

    assert_int_equal(wf_msg_new(pool, WF_PING, &m, NULL), WF_OK);
    m->head.step = step;
    return m;
}

/* Waits for the next message; no wait may pass its time while one is there. */
static wf_msg *await(wf_transport *t, wf_msg_pool *pool, wf_route *from)
{
    int64_t end_ns = wf_now_ns() + DEADLINE_S * WF_NS_PER_S;
    wf_msg *m;

    while (!(m = t->ops->receive(t, pool, from))) {
        assert_true(wf_now_ns() < end_ns);
        wf_wait(&t, 1, -1, 1000 * DEADLINE_S, NULL);
    }
    return m;
}

typedef struct echo {
    wf_transport *t;
    wf_msg_pool pool;
} echo;

/* Sends each message back to where it came from. */
static void *run_echo(void *arg)
{
    echo *e = arg;

    for (uint32_t i = 0; i < ROUNDS; i++) {
        wf_route from = {0};
        wf_msg *m = await(e->t, &e->pool, &from);

        assert_int_equal(m->head.step, i);
        assert_int_equal(e->t->ops->send(e->t, &from, m, NULL), WF_OK);
        wf_msg_free(&e->pool, &m);
    }
    return NULL;
}

/* Two threads wait for each other: one wake-up that is lost stops both. */
static void no_message_is_slept_through(void **state)
{
    (void)state;
    for (size_t k = 0; k < WF_COUNT(addresses); k++) {
        wf_transport *t = NULL;
        wf_msg_pool pool = {0};
        wf_wires *w = NULL;
        pthread_t thread;
        echo e = {0};

        assert_int_equal(wf_wires_new(4, &w, NULL), WF_OK);
        assert_int_equal(wf_wires_listen(w, addresses[k], &e.t, NULL), WF_OK);
        assert_int_equal(wf_wires_dial(w, addresses[k], &t, NULL), WF_OK);
        assert_int_equal(pthread_create(&thread, NULL, run_echo, &e), 0);
        for (uint32_t i = 0; i < ROUNDS; i++) {
            wf_msg *m = ping(&pool, i);
            wf_route from = {0};

            while (t->ops->send(t, &from, m, NULL) != WF_OK)
                continue;
            wf_msg_free(&pool, &m);
            m = await(t, &pool, &from);
            assert_int_equal(m->head.step, i);
            wf_msg_free(&pool, &m);
        }
        pthread_join(thread, NULL);
        t->ops->close(t, 0);
        e.t->ops->close(e.t, 0);
        wf_msg_pool_close(&pool);
        wf_msg_pool_close(&e.pool);
        wf_wires_free(&w);
    }
}

/* The nearest that somebody listens at, whatever the order; the first when there is none. */
static void the_nearest_address_is_dialled(void **state)
{
    static const struct {
        const char *listen, *dial;
    } rows[] = {
        {"mem://a", "tcp|ipc|mem://a"}, /* all but mem are dead */
        {"ipc", "tcp|ipc"},             /* tcp is */
        {"tcp", "tcp|ipc"},             /* a path that nobody made */
        {"tcp", "tcp|mem://other"},
        {"ipc", "ipc"},
    };

    (void)state;
    for (size_t i = 0; i < WF_COUNT(rows); i++) {
        wf_transport *t = NULL, *to = NULL;
        wf_msg_pool pool = {0};
        wf_wires *w = NULL;
        char list[512] = "";
        wf_route from = {0};
        wf_msg *m;

        assert_int_equal(wf_wires_new(4, &w, NULL), WF_OK);
        assert_int_equal(wf_wires_listen(w, full(rows[i].listen), &t, NULL), WF_OK);
        for (const char *rest = rows[i].dial; *rest;
             rest += strcspn(rest, "|"), rest += *rest == '|') {
            char one[64];

            snprintf(one, sizeof one, "%.*s", (int)strcspn(rest, "|"), rest);
            snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", *list ? "|" : "",
                     full(one));
        }
        assert_int_equal(wf_wires_dial(w, list, &to, NULL), WF_OK);
        m = ping(&pool, 5);
        while (to->ops->send(to, &from, m, NULL) != WF_OK)
            continue;
        wf_msg_free(&pool, &m);
        m = await(t, &pool, &from);
        assert_int_equal(m->head.step, 5);
        wf_msg_free(&pool, &m);
        to->ops->close(to, 0);
        t->ops->close(t, 0);
        wf_msg_pool_close(&pool);
        wf_wires_free(&w);
    }
}

static void addresses_are_told_apart(void **state)
{
    static const char *const want[] = {"tcp://h:1", "ipc:///a|b/c d", "mem://x|"};
    const char *rest = "tcp://h:1|ipc:///a|b/c d|mem://x|";
    char one[WF_ADDRESSES_MAX], long_one[2 * WF_ADDRESSES_MAX];

    (void)state;
    for (size_t i = 0; i < WF_COUNT(want); i++) {
        assert_true(wf_wires_next(&rest, one));
        assert_string_equal(one, want[i]);
    }
    assert_false(wf_wires_next(&rest, one));
    memset(long_one, 'x', sizeof long_one);
    long_one[sizeof long_one - 1] = 0;
    rest = long_one;
    assert_false(wf_wires_next(&rest, one));
}

static void a_wait_ends_with_its_time(void **state)
{
    wf_transport *t[WF_COUNT(addresses)];
    int64_t began_ns;
    wf_wires *w = NULL;

    (void)state;
    assert_int_equal(wf_wires_new(4, &w, NULL), WF_OK);
    for (size_t k = 0; k < WF_COUNT(addresses); k++)
        assert_int_equal(wf_wires_listen(w, addresses[k], &t[k], NULL), WF_OK);
    began_ns = wf_now_ns();
    wf_wait(t, WF_COUNT(addresses), -1, 30, NULL);
    assert_in_range((wf_now_ns() - began_ns) / WF_NS_PER_MS, 0, 1000 * DEADLINE_S);
    began_ns = wf_now_ns();
    for (int i = 0; i < 20; i++) /* some end early: a socket has something to do with itself */
        wf_wait(t, WF_COUNT(addresses), -1, 30, NULL);
    assert_in_range((wf_now_ns() - began_ns) / WF_NS_PER_MS, 300, 1000 * DEADLINE_S);
    for (size_t k = 0; k < WF_COUNT(addresses); k++)
        t[k]->ops->close(t[k], 0);
    wf_wires_free(&w);
}

/* A spin that never finds anything gives way to sleep, and comes back as soon as one pays. */
static void a_spin_goes_on_only_while_it_pays(void **state)
{
    wf_transport *t = NULL, *to = NULL;
    wf_msg_pool pool = {0};
    wf_spin spin = {0};
    wf_wires *w = NULL;
    uint32_t spins = 0;

    (void)state;
    assert_int_equal(wf_wires_new(4, &w, NULL), WF_OK);
    assert_int_equal(wf_wires_listen(w, "mem://here", &t, NULL), WF_OK);
    assert_int_equal(wf_wires_dial(w, "mem://here", &to, NULL), WF_OK);
    for (int i = 0; i < 400; i++) {
        uint32_t lost = spin.lost;

        wf_wait(&t, 1, -1, 1, &spin);
        spins += spin.lost != lost;
    }
    assert_in_range(spins, 5, 20);
    while (spin.rest == 0)
        wf_wait(&t, 1, -1, 1, &spin);
    for (bool paid = false; !paid; paid = spin.lost == 0) {
        wf_route from;
        wf_msg *m = ping(&pool, 1);

        assert_int_equal(to->ops->send(to, &(wf_route){0}, m, NULL), WF_OK);
        wf_msg_free(&pool, &m);
        wf_wait(&t, 1, -1, 1000, &spin);
        assert_int_equal(spin.rest, 0); /* a wait that rests, and ends at once, rests no longer */
        m = t->ops->receive(t, &pool, &from);
        wf_msg_free(&pool, &m);
    }
    to->ops->close(to, 0);
    t->ops->close(t, 0);
    wf_msg_pool_close(&pool);
    wf_wires_free(&w);
}

static void an_address_of_no_kind_is_refused(void **state)
{
    wf_transport *t = NULL;
    wf_wires *w = NULL;
    wf_err err = {0};

    (void)state;
    assert_int_equal(wf_wires_new(4, &w, NULL), WF_OK);
    assert_int_equal(wf_wires_listen(w, "pigeon://loft", &t, &err), WF_INVALID);
    assert_string_equal(err.what, "the address pigeon://loft is malformed");
    assert_string_equal(err.hint, "write mem://NAME or ipc://PATH or tcp://HOST:PORT");
    assert_int_equal(wf_wires_dial(w, "", &t, &err), WF_INVALID);
    assert_int_equal(wf_wires_listen(w, "tcp://nowhere", &t, &err), WF_INVALID);
    assert_int_equal(wf_wires_listen(w, "mem://twice", &t, &err), WF_OK);
    assert_int_equal(wf_wires_listen(w, "mem://twice", &(wf_transport *){NULL}, &err), WF_EXISTS);
    t->ops->close(t, 0);
    wf_wires_free(&w);
}

/* ---- a net ---- */

static wf_net *new_net(wf_memnet *ids, wf_task self, uint64_t incarnation)
{
    wf_net_conf conf = wf_memnet_conf(ids, self, incarnation);

    return wf_memnet_new(&conf);
}

/* Polls both until `n` has an event of the kind. */
static wf_event await_event(wf_net *n, wf_net *other, wf_event_kind kind)
{
    int64_t end_ns = wf_now_ns() + DEADLINE_S * WF_NS_PER_S;
    wf_transport *const *transports;
    wf_event ev = {0};
    size_t count;

    while (!wf_net_event(n, wf_now_ns(), &ev)) {
        assert_true(wf_now_ns() < end_ns);
        wf_net_poll(other, wf_now_ns());
        wf_net_poll(n, wf_now_ns());
        transports = wf_net_transports(n, &count);
        wf_wait(transports, count, -1, 1, NULL);
    }
    assert_int_equal(ev.kind, kind);
    return ev;
}

static void a_net_listens_over_several_kinds(void **state)
{
    wf_net *server, *clients[WF_COUNT(addresses)];
    wf_wires *w = NULL;
    wf_memnet ids;

    (void)state;
    wf_memnet_init(&ids, "demo");
    assert_int_equal(wf_wires_new(16, &w, NULL), WF_OK);
    server = new_net(&ids, ps0, 1);
    for (size_t k = 0; k < WF_COUNT(addresses); k++) {
        wf_transport *t = NULL;

        assert_int_equal(wf_wires_listen(w, addresses[k], &t, NULL), WF_OK);
        wf_net_listen(server, &t);
    }
    for (uint32_t k = 0; k < WF_COUNT(addresses); k++) {
        wf_transport *t = NULL;
        wf_peer *p = NULL;
        wf_msg *m = NULL;
        wf_event ev;

        clients[k] = new_net(&ids, (wf_task){WF_ROLE_WORKER, k}, 2 + k);
        assert_int_equal(wf_wires_dial(w, addresses[k], &t, NULL), WF_OK);
        assert_int_equal(wf_net_dial(clients[k], ps0, addresses[k], &t, &p, NULL), WF_OK);
        await_event(clients[k], server, WF_EV_UP);
        ev = await_event(server, clients[k], WF_EV_UP);
        assert_int_equal(ev.peer->task.index, k);
        assert_int_equal(wf_net_msg(server, WF_PUSH_OK, &m, NULL), WF_OK); /* back the same way */
        m->head.step = 7 + k;
        assert_int_equal(wf_net_send(server, ev.peer, WF_LANE_CONTROL, 0, &m, NULL), WF_OK);
        ev = await_event(clients[k], server, WF_EV_MESSAGE);
        assert_int_equal(ev.msg->head.step, 7 + k);
        wf_net_free_msg(clients[k], &ev.msg);
    }
    assert_int_equal(wf_net_accepted_of(server, WF_ROLE_WORKER), WF_COUNT(addresses));
    for (uint32_t k = 0; k < WF_COUNT(addresses); k++)
        wf_net_free(&clients[k], 0);
    wf_net_free(&server, 0);
    wf_wires_free(&w);
    wf_memnet_close(&ids);
}

static void an_accepted_peer_may_come_back_by_another_kind(void **state)
{
    wf_transport *t = NULL;
    wf_net *server, *client;
    wf_wires *w = NULL;
    wf_peer *p = NULL;
    wf_memnet ids;
    wf_event ev;

    (void)state;
    wf_memnet_init(&ids, "demo");
    assert_int_equal(wf_wires_new(16, &w, NULL), WF_OK);
    server = new_net(&ids, ps0, 1);
    client = new_net(&ids, (wf_task){WF_ROLE_WORKER, 0}, 2);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(wf_wires_listen(w, addresses[k], &t, NULL), WF_OK);
        wf_net_listen(server, &t);
    }
    for (int k = 0; k < 2; k++) {
        assert_int_equal(wf_wires_dial(w, addresses[k], &t, NULL), WF_OK);
        assert_int_equal(wf_net_dial(client, ps0, addresses[k], &t, &p, NULL), WF_OK);
        await_event(client, server, WF_EV_UP);
        if (k == 1)
            await_event(server, client, WF_EV_DOWN); /* of the link that it has given up */
        ev = await_event(server, client, WF_EV_UP);
        assert_int_equal(ev.peer->incarnation, 2);
        if (k == 0)
            wf_net_hang_up(client, &p);
    }
    wf_net_free(&client, 0);
    wf_net_free(&server, 0);
    wf_wires_free(&w);
    wf_memnet_close(&ids);
}

/* ---- memory of a transport's own ---- */

static uint8_t own[4096] __attribute__((aligned(64)));
static uint32_t given_back;

static void give_back(void *data, void *hint)
{
    (void)hint;
    given_back += data == own;
}

static wf_buf *own_buf(wf_transport *t, const wf_route *to, size_t bytes, bool several)
{
    (void)t, (void)to, (void)several;
    return bytes <= sizeof own ? wf_buf_wrap(own, bytes, give_back, NULL) : NULL;
}

static void a_buffer_is_of_the_kind_that_it_will_travel_by(void **state)
{
    wf_transport_ops ops;
    wf_memnet nets;
    wf_net *server, *client;
    wf_peer *p;
    wf_buf *b;
    size_t n;

    (void)state;
    wf_memnet_init(&nets, "demo");
    server = new_net(&nets, ps0, 1);
    wf_memnet_listen(&nets, server, "p");
    client = new_net(&nets, (wf_task){WF_ROLE_WORKER, 0}, 2);
    p = wf_memnet_dial(&nets, client, ps0, "p");
    b = wf_net_buf(p, 64);
    assert_non_null(b);
    assert_ptr_not_equal(b->data, own);
    wf_buf_unref(&b);
    ops = *wf_net_transports(client, &n)[0]->ops;
    ops.buf = own_buf;
    wf_net_transports(client, &n)[0]->ops = &ops;
    b = wf_net_buf(p, 64);
    assert_ptr_equal(b->data, own);
    wf_buf_unref(&b);
    assert_int_equal(given_back, 1);
    assert_null(wf_net_buf(p, sizeof own + 1));
    wf_net_free(&client, 0);
    wf_net_free(&server, 0);
    wf_memnet_close(&nets);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_message_is_slept_through),
        cmocka_unit_test(the_nearest_address_is_dialled),
        cmocka_unit_test(addresses_are_told_apart),
        cmocka_unit_test(a_wait_ends_with_its_time),
        cmocka_unit_test(a_spin_goes_on_only_while_it_pays),
        cmocka_unit_test(an_address_of_no_kind_is_refused),
        cmocka_unit_test(a_net_listens_over_several_kinds),
        cmocka_unit_test(an_accepted_peer_may_come_back_by_another_kind),
        cmocka_unit_test(a_buffer_is_of_the_kind_that_it_will_travel_by),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
