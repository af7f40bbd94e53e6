/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/nomem_wire.c - messages go their way while memory ends, and when it comes back each of
 * them has arrived once or its sender knows. */
#include "common/base/clock.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"
#include "common/wire/grammar.h"
#include "common/wire/mem.h"
#include "common/wire/net.h"
#include "common/wire/parts.h"
#include "tests/unit/nomem.h"

#define MS WF_NS_PER_MS
enum { MESSAGES = 5, VALUES = 24 };

static uint64_t next_id(void *ids)
{
    return ++*(uint64_t *)ids * UINT64_C(0x9e3779b97f4a7c15);
}

typedef struct world {
    wf_mem *mem;
    wf_net *server, *client;
    wf_peer *to_server;
    wf_buf *values;
    uint64_t ids;
    int64_t now_ns;
    uint32_t sent, arrived; /* in this order */
} world;

static wf_status open_world(world *w, wf_err *err)
{
    wf_net_conf conf = wf_net_defaults();
    wf_transport *t = NULL;

    conf.cluster = "demo";
    conf.random_id = next_id;
    conf.random_arg = &w->ids;
    conf.self = (wf_task){WF_ROLE_PS, 0};
    conf.incarnation = 1;
    WF_TRY(wf_mem_new(&w->mem, err));
    WF_TRY(wf_net_new(&conf, &w->server, err));
    WF_TRY(wf_mem_listen(w->mem, "ps", &t, err));
    wf_net_listen(w->server, &t);
    conf.self = (wf_task){WF_ROLE_WORKER, 3};
    conf.incarnation = 2;
    WF_TRY(wf_net_new(&conf, &w->client, err));
    WF_TRY(wf_mem_dial(w->mem, "ps", &t, err));
    WF_TRY(wf_net_dial(w->client, (wf_task){WF_ROLE_PS, 0}, "ps", &t, &w->to_server, err));
    w->values = wf_buf_new(VALUES * sizeof(float));
    return w->values ? WF_OK : wf_fail_nomem(err, VALUES * sizeof(float));
}

static void close_world(world *w)
{
    wf_net_free(&w->client, 0);
    wf_net_free(&w->server, 0);
    wf_mem_free(&w->mem);
    wf_buf_unref(&w->values);
}

/* A push whose step is its number. */
static wf_status send(world *w, uint32_t step, wf_err *err)
{
    const wf_part part = {.slice = 4, .bytes = w->values->bytes};
    wf_msg *m = NULL;
    wf_status rc;

    WF_TRY(wf_net_msg(w->client, WF_PUSH, &m, err));
    m->head.step = step;
    rc = wf_msg_add_frame(m, w->values, w->values->data, w->values->bytes, err);
    if (rc == WF_OK)
        rc = wf_parts_put(m, &part, 1, err);
    if (rc == WF_OK)
        rc = wf_net_send(w->client, w->to_server, WF_LANE_DATA, step, &m, err);
    wf_net_free_msg(w->client, &m);
    return rc;
}

/* One millisecond of both; messages must come in their order. */
static wf_status tick(world *w, wf_err *err)
{
    wf_status rc = WF_OK;
    wf_event ev;

    w->now_ns += 100 * MS;
    wf_net_poll(w->client, w->now_ns);
    wf_net_poll(w->server, w->now_ns);
    while (wf_net_event(w->client, w->now_ns, &ev))
        if (ev.kind == WF_EV_DOWN)
            w->sent = w->arrived = 0; /* its sender knows */
        else if (ev.kind == WF_EV_REFUSED)
            rc = wrong(err, "refused for good: %s", ev.err.what);
    while (wf_net_event(w->server, w->now_ns, &ev))
        if (ev.kind == WF_EV_MESSAGE || ev.kind == WF_EV_BEAT) {
            if (ev.msg->head.kind == WF_PUSH && ev.msg->head.step != ++w->arrived)
                rc = wrong(err, "message %u arrived as number %u", ev.msg->head.step, w->arrived);
            wf_net_free_msg(w->server, &ev.msg);
        }
    return rc;
}

static wf_status converse(world *w, wf_err *err)
{
    WF_TRY(open_world(w, err));
    for (int i = 0; i < 10; i++)
        WF_TRY(tick(w, err));
    while (w->sent < MESSAGES) {
        WF_TRY(send(w, w->sent + 1, err));
        w->sent++;
        WF_TRY(tick(w, err));
    }
    return WF_OK;
}

static wf_status send_and_receive(void *unused, wf_err *err)
{
    world w = {.now_ns = 1000 * MS};
    wf_status rc = converse(&w, err);
    bool was = wf_nomem_spare(true);

    (void)unused;
    for (int i = 0; rc == WF_OK && i < 200; i++)
        rc = tick(&w, err);
    wf_nomem_spare(was);
    if (rc == WF_OK && w.arrived != w.sent)
        rc = wrong(err, "%u messages were sent, %u arrived", w.sent, w.arrived);
    close_world(&w);
    return rc;
}

/* A set-up with two members, into a message and out of it. */
static wf_status pack_and_unpack(void *unused, wf_err *err)
{
    Weft__Setup body = WEFT__SETUP__INIT, *again = NULL;
    Weft__View view = WEFT__VIEW__INIT;
    Weft__Member row = WEFT__MEMBER__INIT, *list[] = {&row, &row};
    wf_msg_pool pool = {0};
    wf_msg *m = NULL, *copy = NULL;
    wf_status rc = wf_msg_new(&pool, WF_SETUP, &m, err);

    (void)unused;
    row.address = (char *)"tcp://127.0.0.1:1";
    view.members = list;
    view.n_members = 2;
    body.job = (char *)"mnist";
    body.view = &view;
    if (rc == WF_OK)
        rc = wf_control_put(m, &body.base, err);
    if (rc == WF_OK)
        rc = wf_msg_copy(&pool, m, &copy, err);
    if (rc == WF_OK)
        rc = wf_control_get(copy, &weft__setup__descriptor, &again, err);
    if (rc == WF_OK && (strcmp(again->job, "mnist") != 0 || again->view->n_members != 2 ||
                        strcmp(again->view->members[1]->address, row.address) != 0))
        rc = wrong(err, "another set-up");
    wf_control_free(&again);
    wf_msg_free(&pool, &copy);
    wf_msg_free(&pool, &m);
    wf_msg_pool_close(&pool);
    return rc;
}

static void bodies_are_packed_and_unpacked(void **state)
{
    (void)state;
    assert_survives(pack_and_unpack, NULL);
}

static void messages_arrive_once_memory_is_back(void **state)
{
    (void)state;
    assert_survives(send_and_receive, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_are_packed_and_unpacked),
        cmocka_unit_test(messages_arrive_once_memory_is_back),
    };

    wf_log_init("", WF_ERROR); /* what is dropped is no news here */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
