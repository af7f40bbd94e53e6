/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/zeromq.c - messages over real sockets of this host. */
#include "common/wire/zeromq.h"
#include "between.h"
#include "common/base/clock.h"
#include "common/base/process.h"
#include "common/wire/mem.h"
#include "common/wire/wait.h"
#include "echo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { MESSAGES = 1000 };

static void a_thousand_messages_come_back(const char *address)
{
    echo_server s;

    echo_begin_server(&s, address);
    echo_exchange(address, MESSAGES);
    echo_end_server(&s);
}

static void a_thousand_messages_come_back_over_tcp(void **state)
{
    char address[64];

    (void)state;
    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", echo_free_port());
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
    echo_server s;
    between b;
    echo_client c;
} line;

static void begin_line(line *l)
{
    int port = echo_free_port();
    char address[64];

    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", port);
    echo_begin_server(&l->s, address);
    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", between_begin(&l->b, port));
    echo_begin_client(&l->c, address);
}

static void end_line(line *l)
{
    echo_end_client(&l->c, 0);
    between_end(&l->b);
    echo_end_server(&l->s);
}

static void a_connection_that_one_side_has_lost_is_up_again_within_2_s(void **state)
{
    int64_t waited_ns;
    line l;

    (void)state;
    begin_line(&l);
    echo_one_by_one(&l.c, 1, 100);
    l.b.half_open = true;
    waited_ns = echo_one_by_one(&l.c, 101, 100);
    assert_in_range(waited_ns / WF_NS_PER_MS, 0, 2500); /* 2 s, and a busy machine */
    assert_true(l.b.connections > 1);
    end_line(&l);
}

/* A serving side that computes: its I/O thread answers, so nothing is broken, and nothing is sent
 * twice however long it takes. */
static void a_peer_that_reads_nothing_for_3_s_costs_one_transfer(void **state)
{
    char address[64];
    echo_server s;
    echo_client c;

    (void)state;
    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", echo_free_port());
    echo_begin_server(&s, address);
    echo_begin_client(&c, address);
    echo_one_by_one(&c, 1, 3);
    echo_pause_server(&s);
    echo_push_all(&c, 4, 40);
    echo_poll_for(&c, 3 * WF_NS_PER_S);
    echo_resume(&s);
    echo_take(c.net, 4, 40);
    assert_int_equal(wf_net_resent_bytes(c.ps), 0);
    echo_end_client(&c, 0);
    echo_end_server(&s);
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
    int64_t began_ns, end_ns = wf_now_ns() + ECHO_DEADLINE_S * WF_NS_PER_S;

    (void)state;
    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", echo_free_port());
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
        wf_wait(&serving, 1, -1, 10, NULL);
        got = serving->ops->receive(serving, &pool, &from);
    }
    assert_non_null(got);
    wf_wait(t, MANY + 1, -1, 50, NULL); /* nothing is there yet */
    assert_int_equal(serving->ops->send(serving, &from, m, NULL), WF_OK);
    began_ns = wf_now_ns();
    wf_wait(t, MANY + 1, -1, 5000, NULL);
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
    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", echo_free_port());
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
    echo_one_by_one(&l.c, 1, 3);
    echo_pause_server(&l.s);
    l.b.slow = true;
    echo_push_all(&l.c, 4, 4 + PUSHES);
    echo_poll_for(&l.c, 4 * WF_NS_PER_S);
    assert_int_equal(l.b.connections, 1);
    echo_resume(&l.s);
    echo_take(l.c.net, 4, 4 + PUSHES);
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
        cmocka_unit_test(any_number_of_sockets_is_waited_for),
        cmocka_unit_test(a_port_in_use_says_by_whom),
        cmocka_unit_test(an_address_that_is_none_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
