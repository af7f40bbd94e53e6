/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/zeromq_torn.c - a message that ZeroMQ takes a part of. */
#include "common/base/clock.h"
#include "common/wire/wait.h"
#include "common/wire/zeromq.h"
#include "echo.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

#include <cmocka.h>

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
    int64_t end_ns = wf_now_ns() + ECHO_DEADLINE_S * WF_NS_PER_S;
    wf_buf *b = wf_buf_new(ECHO_PAYLOAD);
    wf_msg *m = NULL;
    bool sent = false;

    assert_non_null(b);
    memset(b->data, (int)step, ECHO_PAYLOAD);
    assert_int_equal(wf_msg_new(&e->pool, WF_PUSH, &m, NULL), WF_OK);
    m->head.step = step;
    assert_int_equal(wf_msg_add_frame(m, b, b->data, ECHO_PAYLOAD, NULL), WF_OK);
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
    int64_t end_ns = wf_now_ns() + ECHO_DEADLINE_S * WF_NS_PER_S;
    wf_route from;
    wf_msg *m;

    for (m = NULL; !m && wf_now_ns() < end_ns; wf_wait(&t, 1, -1, 5, NULL)) {
        m = t->ops->receive(t, &e->pool, &from);
        if (m && m->payload_bytes == 0)
            wf_msg_free(&e->pool, &m);
    }
    assert_non_null(m);
    assert_int_equal(m->head.step, step);
    assert_int_equal(m->n_frames, 1);
    assert_int_equal(m->payload_bytes, ECHO_PAYLOAD);
    assert_int_equal(m->frames[0].data[ECHO_PAYLOAD - 1], step);
    wf_msg_free(&e->pool, &m);
    return from;
}

static void begin_ends(ends *e)
{
    static const wf_route only;
    char address[64];

    *e = (ends){0};
    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", echo_free_port());
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_follows_a_torn_message_arrives_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
