/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/worker_far.c - what runs send and receive through workers: once, also when a link is
 * lost, and whatever a stranger asks for. */
#include "tests/unit/sessions_stage.h"

enum { SENDS = 21, RECEIVES = 22 }; /* handles */

static uint32_t timeout_ms = 1000; /* of runs */

/* Worker 0 sends x under a key to worker 1. */
static void fill_send(Weft__SessionPlan *body)
{
    static Weft__SessionFragment fragment, *fragments[1] = {&fragment};
    static Weft__SessionSend it, *sends[1] = {&it};
    static char *inputs[1] = {"x"};

    weft__session_plan__init(body);
    weft__session_fragment__init(&fragment);
    weft__session_send__init(&it);
    it.key = "k";
    it.to = 1;
    it.value = "x";
    fragment.inputs = inputs;
    fragment.n_inputs = 1;
    fragment.sends = sends;
    fragment.n_sends = 1;
    body->session = 9;
    body->handle = SENDS;
    body->fragments = fragments;
    body->n_fragments = 1;
}

/* Worker 1 receives y from worker 0, and worker 0, whose run it is, gives it to the client. */
static void fill_receive(Weft__SessionPlan *body)
{
    static Weft__SessionFragment fragment, *fragments[1] = {&fragment};
    static Weft__SessionReceive it, *receives[1] = {&it};
    static Weft__SessionResult result, *results[1] = {&result};
    static Weft__TensorHead head;

    weft__session_plan__init(body);
    weft__session_fragment__init(&fragment);
    weft__session_receive__init(&it);
    weft__session_result__init(&result);
    weft__tensor_head__init(&head);
    head.dtype = WF_F32;
    it.key = "k";
    it.from = 0;
    it.value = result.value = "y";
    it.head = &head;
    fragment.worker = 1;
    fragment.receives = receives;
    fragment.n_receives = 1;
    body->session = 9;
    body->handle = RECEIVES;
    body->fragments = fragments;
    body->n_fragments = 1;
    body->results = results;
    body->n_results = 1;
}

static void give_plans(stage *s)
{
    Weft__SessionPlan body;

    fill_send(&body);
    assert_ok(send_plan(s, &body), err);
    fill_receive(&body);
    assert_ok(send_plan(s, &body), err);
}

/* Run `run` of session 9; x is fed unless it is NULL. */
static void begin_far(stage *s, uint32_t handle, uint64_t run, const float *x)
{
    Weft__RunAsk ask = WEFT__RUN_ASK__INIT;
    Weft__SessionFeed feed = WEFT__SESSION_FEED__INIT, *feeds[1] = {&feed};
    wf_tensor t = {.dtype = WF_F32, .data = (float *)x};
    const wf_tensor *tensors[1] = {&t};
    Weft__TensorHead head;
    int64_t dims[WF_MAX_RANK];
    wf_msg *m = NULL;

    wf_tensor_head(&t, &head, dims);
    feed.name = "x";
    feed.tensor = &head;
    ask.session = 9;
    ask.handle = handle;
    ask.timeout_ms = timeout_ms;
    ask.run = run;
    ask.feeds = feeds;
    ask.n_feeds = x ? 1 : 0;
    assert_ok(wf_net_msg(s->client_net, WF_RUN, &m, &err), err);
    assert_ok(wf_tensors_put(m, &ask.base, x ? 1 : 0, tensors, true, &err), err);
    request(s, &m);
}

static wf_status sends(stage *s, uint64_t run, float x)
{
    float none[2];

    begin_far(s, SENDS, run, &x);
    wait_for(s, WAIT_MS);
    return read_run(s, none, NULL);
}

static void receives(stage *s, uint64_t run, float expected)
{
    float got[2] = {0};

    begin_far(s, RECEIVES, run, NULL);
    wait_for(s, WAIT_MS);
    assert_ok(read_run(s, got, NULL), err);
    assert_true(got[0] == expected);
}

/* ---- tests ---- */

static void a_value_goes_from_one_worker_to_another(void **state)
{
    stage *s = *state;
    float none[2];

    begin_other(s, 60);
    give_plans(s);
    assert_ok(sends(s, 1, 5), err);
    assert_ok(sends(s, 2, 6), err);
    receives(s, 3, 5);
    receives(s, 4, 6);
    begin_far(s, RECEIVES, 5, NULL);
    wait_for(s, WAIT_MS);
    assert_int_equal(read_run(s, none, NULL), WF_TIMEOUT);
    assert_says(err, "nothing came from worker 0 under key \"k\" in 900 ms");
    assert_ok(sends(s, 6, 7), err); /* what waited has given up */
    receives(s, 7, 7);
}

/* Another process of the receiver finds what the one before has not taken. */
static void a_receiver_may_start_again(void **state)
{
    stage *s = *state;
    float got[2] = {0};

    begin_other(s, 60);
    give_plans(s);
    assert_ok(sends(s, 1, 5), err);
    receives(s, 2, 5);
    assert_ok(sends(s, 3, 6), err);
    end_other(s);
    begin_other(s, 70);
    begin_far(s, RECEIVES, 4, NULL);
    wait_for(s, 20000);
    assert_ok(read_run(s, got, NULL), err);
    assert_true(got[0] == 6);
}

/* The client's link is lost behind the Send and before the answer: it asks again. */
static void a_run_that_is_asked_for_again_sends_once(void **state)
{
    stage *s = *state;
    const wf_peer *accepted = NULL;
    float x = 5, none[2];

    begin_other(s, 60);
    give_plans(s);
    begin_far(s, SENDS, 1, &x);
    run_client(s);
    s->client_is_deaf = true;
    for (int i = 0; i < 20; i++) {
        run_worker(s);
        turn(s->ps, 0);
    }
    for (size_t i = 0; !accepted || accepted->incarnation != 52; i++)
        assert_non_null(accepted = wf_net_peer_at(s->net, i));
    wf_net_drop(s->net, (wf_peer **)&accepted);
    s->client_is_deaf = false;
    wait_for(s, 60000);
    assert_ok(read_run(s, none, NULL), err);
    receives(s, 2, 5);
    begin_far(s, RECEIVES, 3, NULL);
    wait_for(s, WAIT_MS);
    assert_int_equal(read_run(s, none, NULL), WF_TIMEOUT);
}

/* The same of a Recv that another worker makes: the run's second beginning gets what is sent, and
 * the end of the first takes nothing from it. */
static void a_run_that_is_asked_for_again_receives_once(void **state)
{
    stage *s = *state;
    const wf_peer *accepted = NULL;
    float x = 5, got[2] = {0};

    begin_other(s, 60);
    give_plans(s);
    timeout_ms = 10000;
    begin_far(s, RECEIVES, 1, NULL);
    wait_for(s, 100);
    assert_null(s->answer);
    for (size_t i = 0; !accepted || accepted->incarnation != 52; i++)
        assert_non_null(accepted = wf_net_peer_at(s->net, i));
    wf_net_drop(s->net, (wf_peer **)&accepted);
    wait_for(s, 9200); /* the first one's time is over */
    assert_null(s->answer);
    begin_far(s, SENDS, 2, &x);
    wait_for(s, WAIT_MS); /* and behind its answer comes that of the Recv */
    assert_ok(read_run(s, got, NULL), err);
    assert_true(got[0] == 5);
    timeout_ms = 1000;
    begin_far(s, RECEIVES, 3, NULL);
    wait_for(s, WAIT_MS);
    assert_int_equal(read_run(s, got, NULL), WF_TIMEOUT);
}

/* A run without a number could not be told from the one before. */
static void a_run_without_a_number_is_refused(void **state)
{
    stage *s = *state;

    give_plans(s);
    assert_int_equal(sends(s, 0, 1), WF_PROTO);
    assert_says(err, "has no number");
}

static void what_cannot_be_planned_is_refused(void **state)
{
    stage *s = *state;
    Weft__SessionPlan body;
    int64_t dims[1] = {-1};

    fill_send(&body);
    body.fragments[0]->sends[0]->to = 2;
    assert_int_equal(send_plan(s, &body), WF_PROTO);
    assert_says(err, "Send 0 to worker 2 of 2");
    fill_send(&body);
    body.fragments[0]->sends[0]->number = 64;
    assert_int_equal(send_plan(s, &body), WF_PROTO);
    fill_receive(&body);
    body.fragments[0]->receives[0]->from = 2;
    assert_int_equal(send_plan(s, &body), WF_PROTO);
    fill_receive(&body);
    body.fragments[0]->receives[0]->head = NULL;
    assert_int_equal(send_plan(s, &body), WF_PROTO);
    fill_receive(&body);
    body.fragments[0]->receives[0]->head->dims = dims;
    body.fragments[0]->receives[0]->head->n_dims = 1;
    assert_int_equal(send_plan(s, &body), WF_PROTO);
    fill_receive(&body);
    body.fragments[0]->inputs = (char *[]){"y"}; /* taken before it is received */
    body.fragments[0]->n_inputs = 1;
    assert_int_equal(send_plan(s, &body), WF_PROTO);
    assert_says(err, "\"y\" from two places");
    fill_send(&body);
    body.fragments[0]->inputs = (char *[]){"z"};
    assert_int_equal(send_plan(s, &body), WF_PROTO);
    assert_says(err, "a plan sends \"x\", which its fragment has not");
}

/* A `take` of anybody, damaged in one byte, is answered or waits; and harms nobody. */
static void damaged_takes_harm_nobody(void **state)
{
    stage *s = *state;
    Weft__Take body = WEFT__TAKE__INIT;
    Weft__TensorHead head = WEFT__TENSOR_HEAD__INIT;
    int64_t dims[2] = {3, 4};
    size_t n;

    begin_other(s, 60);
    give_plans(s);
    head.dtype = WF_F32;
    head.dims = dims;
    head.n_dims = 2;
    body.container = "c";
    body.key = "k";
    body.to = 1;
    body.head = &head;
    body.client = 4;
    body.run = 1;
    body.timeout_ms = 100;
    n = protobuf_c_message_get_packed_size(&body.base);
    for (size_t at = 0; at < 2 * n; at++) {
        wf_msg *m = NULL;

        assert_ok(wf_net_msg(s->client_net, WF_TAKE, &m, &err), err);
        assert_ok(wf_control_put(m, &body.base, &err), err);
        if (at < n)
            m->control[at] ^= (uint8_t)(1 + at * 37 % 255);
        else
            m->head.control_bytes = (uint32_t)(at - n);
        request(s, &m);
        wait_for(s, 20);
    }
    assert_ok(sends(s, 1, 5), err);
    receives(s, 2, 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_stage, end_stage)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_value_goes_from_one_worker_to_another),
        TEST(a_receiver_may_start_again),
        TEST(a_run_that_is_asked_for_again_sends_once),
        TEST(a_run_that_is_asked_for_again_receives_once),
        TEST(a_run_without_a_number_is_refused),
        TEST(what_cannot_be_planned_is_refused),
        TEST(damaged_takes_harm_nobody),
    };

    wf_kernels_own_process();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
