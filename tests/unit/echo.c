/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/echo.c */
#include "echo.h"
#include "common/base/clock.h"
#include "common/wire/parts.h"
#include "common/wire/wait.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static const wf_task ps0 = {WF_ROLE_PS, 0};

int echo_free_port(void)
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

    wf_wait(t, count, -1, 5, NULL);
}

/* ---- the server ---- */

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
    echo_server *s = arg;
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

void echo_resume(echo_server *s)
{
    s->stop = false;
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

void echo_pause_server(echo_server *s)
{
    s->stop = true;
    pthread_join(s->thread, NULL);
}

void echo_begin_server(echo_server *s, const char *address)
{
    wf_transport *t = NULL;
    wf_err err;

    *s = (echo_server){0};
    assert_int_equal(wf_zmq_new(16, &s->zmq, NULL), WF_OK);
    s->net = new_net(ps0, 77);
    if (wf_zmq_listen(s->zmq, address, &t, &err) != WF_OK)
        fail_msg("%s", err.what);
    wf_net_listen(s->net, &t);
    echo_resume(s);
}

void echo_end_server(echo_server *s)
{
    echo_pause_server(s);
    wf_net_free(&s->net, 100);
    wf_zmq_free(&s->zmq);
}

/* ---- the client ---- */

static void push(wf_net *n, wf_peer *to, uint32_t step)
{
    wf_buf *b = wf_buf_new(ECHO_PAYLOAD);
    wf_part part = {.slice = step, .bytes = ECHO_PAYLOAD};
    wf_msg *m = NULL;

    assert_non_null(b);
    for (uint32_t i = 0; i < ECHO_PAYLOAD / sizeof(uint32_t); i++)
        ((uint32_t *)b->data)[i] = step * 31 + i;
    assert_int_equal(wf_net_msg(n, WF_PUSH, &m, NULL), WF_OK);
    m->head.step = step;
    assert_int_equal(wf_msg_add_frame(m, b, b->data, ECHO_PAYLOAD, NULL), WF_OK);
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
    assert_int_equal(parts[0].bytes, ECHO_PAYLOAD);
    data = wf_part_data(m, &parts[0]);
    assert_int_equal(data[0], step * 31);
    assert_int_equal(data[ECHO_PAYLOAD / sizeof(uint32_t) - 1],
                     step * 31 + ECHO_PAYLOAD / sizeof(uint32_t) - 1);
}

void echo_take(wf_net *n, uint32_t next, uint32_t end)
{
    int64_t end_ns = wf_now_ns() + ECHO_DEADLINE_S * WF_NS_PER_S;
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

void echo_begin_client(echo_client *c, const char *address)
{
    wf_transport *t = NULL;

    *c = (echo_client){.net = new_net((wf_task){WF_ROLE_WORKER, 1}, wf_now_ns() | 1)};
    assert_int_equal(wf_zmq_new(4, &c->zmq, NULL), WF_OK);
    assert_int_equal(wf_zmq_dial(c->zmq, address, &t, NULL), WF_OK);
    assert_int_equal(wf_net_dial(c->net, ps0, address, &t, &c->ps, NULL), WF_OK);
}

void echo_end_client(echo_client *c, int linger_ms)
{
    wf_net_free(&c->net, linger_ms);
    wf_zmq_free(&c->zmq);
}

void echo_push_all(echo_client *c, uint32_t next, uint32_t end)
{
    for (; next < end; next++)
        push(c->net, c->ps, next);
}

void echo_exchange(const char *address, uint32_t count)
{
    echo_client c;

    echo_begin_client(&c, address);
    echo_push_all(&c, 1, count + 1);
    echo_take(c.net, 1, count + 1);
    echo_end_client(&c, 100);
}

int64_t echo_one_by_one(echo_client *c, uint32_t first, uint32_t count)
{
    int64_t longest_ns = 0, end_ns = wf_now_ns() + ECHO_DEADLINE_S * WF_NS_PER_S;
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

void echo_poll_for(echo_client *c, int64_t ns)
{
    for (int64_t end_ns = wf_now_ns() + ns; wf_now_ns() < end_ns; wait_for(c->net))
        wf_net_poll(c->net, wf_now_ns());
}
