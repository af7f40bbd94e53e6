/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/worker_sessions.c - runs of clients' sessions on a worker, beside a ps, in memory:
 * what they read, compute and change, and what happens when a link is lost. */
#include "tests/unit/sessions_stage.h"

/* ---- tests ---- */

static void a_run_reads_computes_and_adds(void **state)
{
    stage *s = *state;

    change(s, WF_VARIABLE_CREATE, "v", 1);
    assert_ok(give_plan(s), err);
    begin_run_with(s, 10);
    wait_for(s, WAIT_MS);
    expect(s, 11, 12); /* 1 + 10, and that added to 1 */
    begin_run_with(s, 0);
    wait_for(s, WAIT_MS);
    expect(s, 12, 24);
    change(s, WF_VARIABLE_ASSIGN, "v", -5);
    begin_run_with(s, 5);
    wait_for(s, WAIT_MS);
    expect(s, 0, -5);
}

/* As after the worker has started again, or many plans. */
static void a_plan_that_is_not_held_is_asked_for(void **state)
{
    stage *s = *state;
    bool unknown = false;
    float none[2];

    change(s, WF_VARIABLE_CREATE, "v", 1);
    begin_run_with(s, 1);
    wait_for(s, WAIT_MS);
    assert_int_equal(read_run(s, none, &unknown), WF_NOTFOUND);
    assert_true(unknown);
    for (uint32_t handle = 0; handle <= WF_SESSION_PLANS; handle++) {
        Weft__SessionPlan body;
        wf_bytes graph = {0};

        fill_plan(&body, &graph, "v");
        body.handle = 1 + handle;
        assert_ok(send_plan(s, &body), err);
        wf_bytes_close(&graph);
    }
    begin_run_with(s, 1); /* of handle 1, which has made room */
    wait_for(s, WAIT_MS);
    assert_int_equal(read_run(s, none, &unknown), WF_NOTFOUND);
    assert_true(unknown);
    assert_ok(give_plan(s), err);
    begin_run_with(s, 1);
    wait_for(s, WAIT_MS);
    expect(s, 2, 3);
}

static void errors_name_their_place(void **state)
{
    stage *s = *state;
    float two[2] = {1, 2}, none[2];
    wf_tensor t = {.dtype = WF_F32, .rank = 1, .dims = {2}, .data = two};

    assert_ok(give_plan(s), err);
    begin_run_with(s, 1);
    wait_for(s, WAIT_MS);
    assert_int_equal(read_run(s, none, NULL), WF_NOTFOUND);
    assert_string_equal(err.what, "worker 0: ps 0: there is no variable \"v\"");
    change(s, WF_VARIABLE_CREATE, "v", 1);
    begin_run(s, &t);
    wait_for(s, WAIT_MS);
    assert_int_equal(read_run(s, none, NULL), WF_SHAPE);
    assert_says(err, "\"x\" is float32 [2], and the graph takes float32 []");
    begin_run(s, NULL);
    wait_for(s, WAIT_MS);
    assert_int_equal(read_run(s, none, NULL), WF_USAGE);
    assert_string_equal(err.what, "worker 0: \"x\" is not fed");
}

static void a_plan_that_contradicts_itself_is_refused(void **state)
{
    stage *s = *state;
    Weft__SessionPlan body;
    wf_bytes graph = {0};

    fill_plan(&body, &graph, "v");
    body.fragments[0]->outputs[0]->value = "x";
    assert_int_equal(send_plan(s, &body), WF_PROTO);
    assert_says(err, "\"x\" from two places");
    body.fragments[0]->outputs[0]->value = "sum";
    body.fragments[0]->outputs[0]->output = "nothing";
    assert_int_equal(send_plan(s, &body), WF_PROTO);
    body.fragments[0]->outputs[0]->output = "sum";
    body.fragments[0]->inputs[0] = "nothing";
    assert_int_equal(send_plan(s, &body), WF_PROTO);
    body.fragments[0]->inputs[0] = "v";
    body.fragments[0]->worker = 2;
    assert_int_equal(send_plan(s, &body), WF_PROTO);
    body.fragments[0]->worker = 0;
    body.writes[0]->action = WF_VARIABLE_REMOVE;
    assert_int_equal(send_plan(s, &body), WF_PROTO);
    body.writes[0]->action = WF_VARIABLE_ADD;
    body.results[1]->write = 2;
    assert_int_equal(send_plan(s, &body), WF_PROTO);
    body.results[1]->write = 1;
    body.fragments[0]->graph.len /= 2;
    assert_int_equal(send_plan(s, &body), WF_INVALID);
    body.fragments[0]->graph.len = graph.size;
    assert_ok(send_plan(s, &body), err);
    wf_bytes_close(&graph);
}

/* The worker answers before the client gives up. */
static void a_ps_that_is_away_is_named(void **state)
{
    stage *s = *state;
    float none[2];

    change(s, WF_VARIABLE_CREATE, "v", 1);
    assert_ok(give_plan(s), err);
    s->ps_is_deaf = true;
    begin_run_with(s, 1);
    wait_for(s, WAIT_MS);
    assert_int_equal(read_run(s, none, NULL), WF_TIMEOUT);
    assert_string_equal(err.what, "worker 0: no answer from ps/0 at p in 1000 ms");
    s->ps_is_deaf = false;
    begin_run_with(s, 1);
    wait_for(s, 20000);
    expect(s, 2, 3);
}

/* The ps has forgotten the worker while a run waited: it is asked again over the next link. */
static void a_run_outlives_a_link_to_the_ps(void **state)
{
    stage *s = *state;
    const wf_peer *accepted = NULL;

    change(s, WF_VARIABLE_CREATE, "v", 1);
    assert_ok(give_plan(s), err);
    begin_run_with(s, 1);
    wait_for(s, WAIT_MS);
    expect(s, 2, 3);
    for (size_t i = 0; !accepted || accepted->incarnation != 51; i++)
        assert_non_null(accepted = wf_net_peer_at(s->ps->net, i));
    wf_net_drop(s->ps->net, (wf_peer **)&accepted);
    begin_run_with(s, 1);
    wait_for(s, 20000);
    expect(s, 4, 7);
}

/* The client's link is lost behind the change and before the answer: it asks again, and the ps
 * knows the change. */
static void a_run_that_is_asked_for_again_changes_once(void **state)
{
    stage *s = *state;
    const wf_peer *accepted = NULL;
    float got[2];

    change(s, WF_VARIABLE_CREATE, "v", 1);
    assert_ok(give_plan(s), err);
    begin_run_with(s, 10);
    run_client(s);
    s->client_is_deaf = true;
    for (int i = 0; i < 20; i++) {
        run_worker(s);
        turn(s->ps, 0);
    }
    for (size_t i = 0; !accepted || accepted->incarnation != 52; i++)
        assert_non_null(accepted = wf_net_peer_at(s->net, i));
    wf_net_drop(s->net, (wf_peer **)&accepted); /* as if it had been silent for long */
    change(s, WF_VARIABLE_ADD, "v", 100);
    s->client_is_deaf = false;
    wait_for(s, 60000);
    assert_ok(read_run(s, got, NULL), err);
    assert_true(got[1] == 12); /* 1 + 11, and nothing more, nor what others have added since */
    begin_run_with(s, 0);
    wait_for(s, WAIT_MS);
    expect(s, 112, 224);
}

/* The same plan with its one fragment on worker 1. */
static wf_status give_plan_for_other(stage *s)
{
    Weft__SessionPlan body;
    wf_bytes graph = {0};
    wf_status rc;

    fill_plan(&body, &graph, "v");
    body.fragments[0]->worker = 1;
    rc = send_plan(s, &body);
    wf_bytes_close(&graph);
    return rc;
}

/* What it takes goes there and comes back; and the plan goes again to one that has started again.
 */
static void a_fragment_is_computed_by_another_worker(void **state)
{
    stage *s = *state;

    begin_other(s, 60);
    change(s, WF_VARIABLE_CREATE, "v", 1);
    assert_ok(give_plan_for_other(s), err);
    begin_run_with(s, 10);
    wait_for(s, WAIT_MS);
    expect(s, 11, 12);
    begin_run_with(s, 0);
    wait_for(s, WAIT_MS);
    expect(s, 12, 24);
    end_other(s);
    begin_other(s, 70);
    begin_run_with(s, 1);
    wait_for(s, 20000);
    expect(s, 25, 49);
}

static void another_worker_that_is_away_is_named(void **state)
{
    stage *s = *state;
    float none[2];

    change(s, WF_VARIABLE_CREATE, "v", 1);
    assert_ok(give_plan_for_other(s), err);
    begin_run_with(s, 10);
    wait_for(s, WAIT_MS);
    assert_int_equal(read_run(s, none, NULL), WF_TIMEOUT);
    assert_string_equal(err.what, "worker 0: no answer from worker/1 at w1 in 1000 ms");
    begin_other(s, 60);
    begin_run_with(s, 10);
    wait_for(s, 20000);
    expect(s, 11, 12);
}

/* Its errors are the client's, behind the names of both. */
static void errors_of_another_worker_come_through(void **state)
{
    stage *s = *state;
    float two[2] = {1, 2}, none[2];
    wf_tensor t = {.dtype = WF_F32, .rank = 1, .dims = {2}, .data = two};
    Weft__SessionPlan body;
    wf_bytes graph = {0};

    begin_other(s, 60);
    change(s, WF_VARIABLE_CREATE, "v", 1);
    assert_ok(give_plan_for_other(s), err);
    begin_run(s, &t);
    wait_for(s, WAIT_MS);
    assert_int_equal(read_run(s, none, NULL), WF_SHAPE);
    assert_says(err, "worker 0: worker 1: \"x\" is float32 [2]");
    fill_plan(&body, &graph, "v");
    body.fragments[0]->worker = 1;
    body.fragments[0]->graph.len /= 2;
    assert_ok(send_plan(s, &body), err); /* worker 0 does not look into it */
    begin_run_with(s, 1);
    wait_for(s, WAIT_MS);
    assert_int_equal(read_run(s, none, NULL), WF_INVALID);
    wf_bytes_close(&graph);
}

static void runs_and_plans_end_with_their_client(void **state)
{
    stage *s = *state;
    bool unknown = false;
    float got[2];
    wf_net_conf c = wf_memnet_conf(&s->ps->nets, (wf_task){WF_ROLE_CLIENT, 1}, 53);

    change(s, WF_VARIABLE_CREATE, "v", 1);
    assert_ok(give_plan(s), err);
    s->ps_is_deaf = true;
    begin_run_with(s, 1);
    wait_for(s, 100);
    assert_null(s->answer);
    assert_true(wf_sessions_deadline(s->sessions) < INT64_MAX);
    wf_requests_close(&s->requests);
    wf_net_free(&s->client_net, 10); /* it says bye */
    for (int i = 0; i < 3; i++)
        run_worker(s);
    assert_true(wf_sessions_deadline(s->sessions) == INT64_MAX);
    s->ps_is_deaf = false;
    s->client_net = wf_memnet_new(&c);
    s->requests = (wf_requests){.net = s->client_net};
    s->worker = wf_memnet_dial(&s->ps->nets, s->client_net, (wf_task){WF_ROLE_NONE, 0}, "w");
    begin_run_with(s, 1);
    wait_for(s, 20000);
    assert_int_equal(read_run(s, got, &unknown), WF_NOTFOUND);
    assert_true(unknown);
    assert_ok(give_plan(s), err);
    begin_run_with(s, 1);
    wait_for(s, 20000);
    expect(s, 2, 3);
}

/* Byte `at` of n has other bits; false past the end. */
static bool flip(uint8_t *bytes, size_t n, size_t at)
{
    if (at < n)
        bytes[at] ^= (uint8_t)(1 + at * 37 % 255);
    return at < n;
}

/* A body that is damaged in one byte, cut behind it or not, is answered and harms nobody. */
static void damaged_plans_are_answered(void **state)
{
    stage *s = *state;
    Weft__SessionPlan body;
    wf_bytes graph = {0};

    change(s, WF_VARIABLE_CREATE, "v", 1);
    fill_plan(&body, &graph, "v");
    for (size_t at = 0, n = protobuf_c_message_get_packed_size(&body.base); at < 2 * n; at++) {
        wf_msg *m = NULL;

        assert_ok(wf_net_msg(s->client_net, WF_PLAN, &m, &err), err);
        assert_ok(wf_control_put(m, &body.base, &err), err);
        if (!flip(m->control, n, at))
            m->head.control_bytes = (uint32_t)(at - n);
        request(s, &m);
        wait_for(s, WAIT_MS);
        assert_non_null(s->answer);
    }
    assert_ok(send_plan(s, &body), err);
    begin_run_with(s, 1);
    wait_for(s, WAIT_MS);
    expect(s, 2, 3);
    wf_bytes_close(&graph);
}

static void damaged_runs_are_answered(void **state)
{
    stage *s = *state;
    float x = 1;
    wf_tensor t = {.dtype = WF_F32, .data = &x};
    const wf_tensor *tensors[1] = {&t};
    Weft__RunAsk ask = WEFT__RUN_ASK__INIT;
    Weft__SessionFeed feed = WEFT__SESSION_FEED__INIT, *feeds[1] = {&feed};
    Weft__TensorHead head;
    int64_t dims[WF_MAX_RANK];
    size_t n;

    assert_ok(give_plan(s), err);
    wf_tensor_head(&t, &head, dims);
    feed.name = "x";
    feed.tensor = &head;
    ask.session = 9;
    ask.handle = 1;
    ask.sequence = 1;
    ask.timeout_ms = 1000;
    ask.feeds = feeds;
    ask.n_feeds = 1;
    n = protobuf_c_message_get_packed_size(&ask.base);
    for (size_t at = 0; at < n; at++) {
        wf_msg *m = NULL;

        assert_ok(wf_net_msg(s->client_net, WF_RUN, &m, &err), err);
        assert_ok(wf_tensors_put(m, &ask.base, 1, tensors, false, &err), err);
        flip(m->frames[0].buf->data, n, at);
        request(s, &m);
        wait_for(s, WAIT_MS);
        assert_non_null(s->answer);
    }
    change(s, WF_VARIABLE_CREATE, "v", 1);
    s->sequence = 1000;
    begin_run_with(s, 1);
    wait_for(s, WAIT_MS);
    expect(s, 2, 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_stage, end_stage)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_run_reads_computes_and_adds),
        TEST(a_plan_that_is_not_held_is_asked_for),
        TEST(errors_name_their_place),
        TEST(a_plan_that_contradicts_itself_is_refused),
        TEST(a_ps_that_is_away_is_named),
        TEST(a_run_outlives_a_link_to_the_ps),
        TEST(a_run_that_is_asked_for_again_changes_once),
        TEST(a_fragment_is_computed_by_another_worker),
        TEST(another_worker_that_is_away_is_named),
        TEST(errors_of_another_worker_come_through),
        TEST(runs_and_plans_end_with_their_client),
        TEST(damaged_plans_are_answered),
        TEST(damaged_runs_are_answered),
    };

    wf_kernels_own_process();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
