/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/ps_clients.c - clients of sessions at a ps: what they know at first, what they share,
 * lost links, and messages that cannot be right. */
#include "common/wire/requests.h"
#include "common/wire/tensors.h"
#include "common/wire/variables.h"
#include "tests/unit/ps_players.h"

typedef struct client {
    wf_net *net;
    wf_peer *ps;
    wf_requests requests;
    uint64_t session, sequence;
    uint32_t number;
    wf_msg *answer;
    wf_err refused;
} client;

static bool is_deaf; /* nothing of the ps arrives */
static uint32_t ps_end;

static void carry(void *arg, const wf_packet *packet)
{
    world *w = arg;
    wf_packet it = *packet;

    if (is_deaf && packet->from == ps_end)
        wf_mem_drop(w->nets.mem, &it);
    else
        wf_mem_deliver(w->nets.mem, &it);
}

static void dial_as(world *w, client *c, uint64_t incarnation, wf_task to, const char *cluster)
{
    wf_net_conf conf = wf_memnet_conf(&w->nets, (wf_task){WF_ROLE_CLIENT, 4711}, incarnation);

    conf.cluster = cluster;
    *c = (client){.session = incarnation, .net = wf_memnet_new(&conf)};
    c->requests.net = c->net;
    c->ps = wf_memnet_dial(&w->nets, c->net, to, "p");
}

static void run_client(world *w, client *c)
{
    wf_event ev;
    void *user;

    wf_net_poll(c->net, w->now_ns);
    while (wf_net_event(c->net, w->now_ns, &ev)) {
        if (ev.kind == WF_EV_UP)
            assert_int_equal(wf_requests_on_up(&c->requests, ev.peer, NULL), WF_OK);
        if (ev.kind == WF_EV_REFUSED)
            c->refused = ev.err;
        if (ev.kind != WF_EV_MESSAGE)
            continue;
        if (wf_requests_answered(&c->requests, ev.peer, ev.msg->head.request, &user))
            c->answer = ev.msg;
        else
            wf_net_free_msg(c->net, &ev.msg);
    }
    wf_net_flush(c->net, w->now_ns);
}

/* Until its request is answered, for `ms` at most. */
static void run_for(world *w, client *c, int64_t ms)
{
    for (int64_t at = 0; at < ms && !c->answer; at += 10) {
        run_client(w, c);
        turn(w, 0);
        run_client(w, c);
    }
}

static void end_client(client *c)
{
    wf_net_free_msg(c->net, &c->answer);
    wf_requests_close(&c->requests);
    wf_net_free(&c->net, 0);
}

static void open_client(world *w, client *c, uint64_t incarnation)
{
    dial_as(w, c, incarnation, (wf_task){WF_ROLE_NONE, 0}, "");
    run_for(w, c, 100);
    assert_true(c->ps->up);
}

static void put(client *c, Weft__VariableAsk *ask, uint32_t n, const wf_tensor *const tensors[])
{
    wf_msg *m = NULL;

    wf_net_free_msg(c->net, &c->answer);
    assert_int_equal(wf_net_msg(c->net, WF_VARIABLE, &m, NULL), WF_OK);
    assert_int_equal(wf_tensors_put(m, &ask->base, n, tensors, true, NULL), WF_OK);
    assert_int_equal(wf_requests_send(&c->requests, c->ps, &m, c, &c->number, NULL), WF_OK);
}

static void begin_act(client *c, wf_variable_action action, const char *name, float x)
{
    Weft__VariableAsk ask = WEFT__VARIABLE_ASK__INIT;
    wf_tensor t = {.dtype = WF_F32, .data = &x};
    const wf_tensor *tensors[1] = {&t};
    Weft__TensorHead head;
    int64_t dims[WF_MAX_RANK];

    ask.action = action;
    ask.session = c->session;
    ask.sequence = ++c->sequence;
    ask.name = (char *)name;
    ask.wants_value = true;
    wf_tensor_head(&t, &head, dims);
    ask.tensor = wf_variable_brings(action) ? &head : NULL;
    put(c, &ask, wf_variable_brings(action), tensors);
}

/* The status of its answer, and the variable's value. */
static wf_status read_answer(const client *c, float *x)
{
    Weft__VariableAnswer *body = NULL;
    wf_tensor *t = NULL;
    wf_status rc;

    assert_non_null(c->answer);
    assert_int_equal(wf_tensors_body(c->answer, &weft__variable_answer__descriptor, &body, NULL),
                     WF_OK);
    rc = (wf_status)body->status;
    assert_int_equal(rc == WF_OK, body->what[0] == 0);
    if (x) {
        assert_int_equal(rc, WF_OK);
        assert_int_equal(wf_tensors_take(c->answer, 0, body->tensor, &t, NULL), WF_OK);
        *x = wf_f32(t)[0];
    }
    wf_tensor_free(&t);
    wf_control_free(&body);
    return rc;
}

static float act(world *w, client *c, wf_variable_action action, const char *name, float x)
{
    float value = -1;

    begin_act(c, action, name, x);
    run_for(w, c, 1000);
    assert_int_equal(read_answer(c, &value), WF_OK);
    return value;
}

/* ---- tests ---- */

static void an_address_is_enough_to_know_the_task(void **state)
{
    world *w = *state;
    client c;

    open_client(w, &c, 100);
    assert_int_equal(c.ps->task.role, WF_ROLE_PS);
    assert_int_equal(c.ps->task.index, 0);
    end_client(&c);
}

/* Who believes to know whom it dials is told when that is wrong; a task of another cluster too. */
static void a_hello_that_names_another_task_is_refused(void **state)
{
    world *w = *state;
    client c;

    dial_as(w, &c, 100, (wf_task){WF_ROLE_PS, 1}, "");
    run_for(w, &c, 100);
    assert_false(c.ps->up);
    assert_string_equal(c.refused.what, "client/4711 dialled ps 1 and reached ps/0");
    end_client(&c);
    dial_as(w, &c, 101, (wf_task){WF_ROLE_PS, 0}, "other");
    run_for(w, &c, 100);
    assert_false(c.ps->up);
    assert_non_null(strstr(c.refused.what, "belongs to cluster \"other\""));
    end_client(&c);
}

static void what_one_client_assigns_another_reads(void **state)
{
    world *w = *state;
    client a, b;

    open_client(w, &a, 100);
    open_client(w, &b, 101);
    assert_true(act(w, &a, WF_VARIABLE_CREATE, "v", 0) == 0);
    assert_true(act(w, &a, WF_VARIABLE_ASSIGN, "v", 3) == 3);
    assert_true(act(w, &b, WF_VARIABLE_READ, "v", 0) == 3);
    assert_true(act(w, &b, WF_VARIABLE_ADD, "v", 2) == 5);
    assert_true(act(w, &a, WF_VARIABLE_READ, "v", 0) == 5);
    end_client(&a);
    end_client(&b);
}

/* P8: a variable of the name of a job's is another one. */
static void a_job_and_sessions_do_not_meet(void **state)
{
    world *w = *state;
    player *worker;
    client c;

    open_client(w, &c, 100);
    assert_true(act(w, &c, WF_VARIABLE_CREATE, "w", 7) == 7);
    worker = begin_with_worker(w);
    send_list(worker);
    turn(w, 20);
    push_value(worker, 1, 0, 1, 1.0f);
    turn(w, 20);
    holds(w, 1, -rate);
    assert_true(act(w, &c, WF_VARIABLE_ADD, "w", 1) == 8);
    holds(w, 1, -rate);
    send(&w->master, WF_HALT, NULL, 0);
    turn(w, 20);
    assert_true(act(w, &c, WF_VARIABLE_READ, "w", 0) == 8);
    end_client(&c);
}

static void a_change_whose_answer_is_lost_with_the_link_is_made_once(void **state)
{
    world *w = *state;
    const wf_peer *accepted = NULL;
    client c;

    open_client(w, &c, 100);
    assert_true(act(w, &c, WF_VARIABLE_CREATE, "v", 0) == 0);
    is_deaf = true;
    begin_act(&c, WF_VARIABLE_ADD, "v", 1);
    run_for(w, &c, 100);
    assert_null(c.answer);
    for (size_t i = 0; !accepted || accepted->incarnation != 100; i++)
        assert_non_null(accepted = wf_net_peer_at(w->net, i));
    wf_net_drop(w->net, (wf_peer **)&accepted); /* as if it had been silent for long */
    is_deaf = false;
    run_for(w, &c, 60000);
    assert_int_equal(read_answer(&c, NULL), WF_OK);
    assert_true(act(w, &c, WF_VARIABLE_READ, "v", 0) == 1);
    end_client(&c);
}

static wf_status refusal(world *w, client *c, Weft__VariableAsk *ask, uint32_t n,
                         const wf_tensor *const tensors[])
{
    put(c, ask, n, tensors);
    run_for(w, c, 1000);
    return read_answer(c, NULL);
}

static void what_cannot_be_right_is_answered_with_an_error(void **state)
{
    world *w = *state;
    float x[2] = {1, 2};
    wf_tensor t = {.dtype = WF_F32, .rank = 1, .dims = {2}, .data = x};
    const wf_tensor *tensors[1] = {&t};
    Weft__VariableAsk ask = WEFT__VARIABLE_ASK__INIT;
    Weft__TensorHead head = WEFT__TENSOR_HEAD__INIT;
    int64_t dims[9] = {2, 1, 1, 1, 1, 1, 1, 1, 1};
    client c;

    open_client(w, &c, 100);
    assert_true(act(w, &c, WF_VARIABLE_CREATE, "v", 1) == 1);
    ask.name = "v";
    assert_int_equal(refusal(w, &c, &ask, 0, NULL), WF_UNSUPPORTED);
    ask.action = 77;
    assert_int_equal(refusal(w, &c, &ask, 0, NULL), WF_UNSUPPORTED);
    ask.action = WF_VARIABLE_ADD;
    assert_int_equal(refusal(w, &c, &ask, 0, NULL), WF_PROTO); /* no sequence */
    ask.session = 1;
    ask.sequence = 1;
    assert_int_equal(refusal(w, &c, &ask, 0, NULL), WF_PROTO); /* no tensor */
    head.dims = dims;
    head.n_dims = 1;
    ask.tensor = &head;
    assert_int_equal(refusal(w, &c, &ask, 1, tensors), WF_PROTO); /* no dtype */
    head.dtype = WF_F32;
    assert_int_equal(refusal(w, &c, &ask, 0, NULL), WF_PROTO); /* no content */
    dims[0] = 3;
    assert_int_equal(refusal(w, &c, &ask, 1, tensors), WF_PROTO); /* other bytes */
    dims[0] = INT64_MAX;
    assert_int_equal(refusal(w, &c, &ask, 1, tensors), WF_PROTO);
    dims[0] = -1;
    assert_int_equal(refusal(w, &c, &ask, 1, tensors), WF_PROTO);
    dims[0] = 2;
    head.n_dims = 9;
    assert_int_equal(refusal(w, &c, &ask, 1, tensors), WF_PROTO);
    head.n_dims = 1;
    assert_int_equal(refusal(w, &c, &ask, 1, tensors), WF_SHAPE);
    assert_true(act(w, &c, WF_VARIABLE_READ, "v", 0) == 1);
    end_client(&c);
}

/* A body that is damaged in one byte is answered, and harms nobody. */
static void damaged_asks_are_answered(void **state)
{
    world *w = *state;
    float x = 1;
    wf_tensor t = {.dtype = WF_F32, .data = &x};
    const wf_tensor *tensors[1] = {&t};
    Weft__VariableAsk ask = WEFT__VARIABLE_ASK__INIT;
    Weft__TensorHead head;
    int64_t dims[WF_MAX_RANK];
    client c;
    size_t n;

    open_client(w, &c, 100);
    wf_tensor_head(&t, &head, dims);
    ask.action = WF_VARIABLE_ADD;
    ask.session = 100;
    ask.sequence = 1;
    ask.container = "container";
    ask.name = "name";
    ask.tensor = &head;
    n = protobuf_c_message_get_packed_size(&ask.base);
    for (size_t at = 0; at < n; at++) {
        wf_msg *m = NULL;

        wf_net_free_msg(c.net, &c.answer);
        assert_int_equal(wf_net_msg(c.net, WF_VARIABLE, &m, NULL), WF_OK);
        assert_int_equal(wf_tensors_put(m, &ask.base, 1, tensors, false, NULL), WF_OK);
        ((uint8_t *)m->frames[0].buf->data)[at] ^= (uint8_t)(1 + at * 37 % 255);
        assert_int_equal(wf_requests_send(&c.requests, c.ps, &m, &c, &c.number, NULL), WF_OK);
        run_for(w, &c, 1000);
        assert_non_null(c.answer);
    }
    c.sequence = 1 << 20;
    assert_true(act(w, &c, WF_VARIABLE_CREATE, "v", 4) == 4);
    end_client(&c);
}

static int begin_carried(void **state)
{
    int rc = begin(state);
    world *w = *state;
    size_t n;

    is_deaf = false;
    ps_end = wf_mem_endpoint(wf_net_transports(w->net, &n)[0]); /* its listener */
    wf_mem_set_carrier(w->nets.mem, carry, w);
    return rc;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_carried, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_address_is_enough_to_know_the_task),
        TEST(a_hello_that_names_another_task_is_refused),
        TEST(what_one_client_assigns_another_reads),
        TEST(a_job_and_sessions_do_not_meet),
        TEST(a_change_whose_answer_is_lost_with_the_link_is_made_once),
        TEST(what_cannot_be_right_is_answered_with_an_error),
        TEST(damaged_asks_are_answered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
