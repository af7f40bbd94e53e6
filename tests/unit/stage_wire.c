/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/stage_wire.c - what a stage is sent that cannot be: by a worker that is none of its
 * own, for another edge, round or micro-batch, of other bytes, twice, before its time. It is
 * refused with a sentence, or dropped where it may only be late; the stage is as it was. */
#include "stage_world.h"

/* ---- starts ---- */

static void refuse_start(start *s, const char *part)
{
    uint32_t answers = w.heard[WF_STAGE_READY];

    send_body(0, WF_STAGE_START, 0, &s->body.base);
    assert_int_equal(w.says, WF_OK); /* the chief hears why */
    assert_int_equal(w.heard[WF_STAGE_READY], answers + 1);
    assert_null(middle());
    assert_int_equal(w.trainer->guests.n, 0);
    if (!strstr(w.said, part) || !w.said[0])
        fail_msg("\"%s\" does not say \"%s\"", w.said, part);
}

static void a_start_that_cannot_be_is_answered(void **state)
{
    start s;

    (void)state;
    make_start(&s);
    s.body.stage = 0;
    refuse_start(&s, "stage 0");
    make_start(&s);
    s.body.stage = WORKERS;
    refuse_start(&s, "stage 3");
    make_start(&s);
    s.body.n_stages = 0;
    refuse_start(&s, "of 0");
    make_start(&s);
    s.rows[1].worker = 2; /* that is another worker's */
    refuse_start(&s, "begin here");
    make_start(&s);
    s.rows[0].worker = 2; /* the sender is not its chief */
    refuse_start(&s, "begin here");
    make_start(&s);
    s.body.micro_batches = WF_STAGE_ROUND_MOST + 1;
    refuse_start(&s, "micro-batches");
    make_start(&s);
    s.rows[1].device = "cuda:9";
    refuse_start(&s, "on cuda:9 of worker/1, which has not that device");
    make_start(&s);
    s.body.train_graph.len /= 2;
    refuse_start(&s, "");
    make_start(&s);
    s.body.first_records = UINT64_MAX;
    refuse_start(&s, "");
    begin_stage(); /* after all that */
}

static void an_edge_that_cannot_be_refuses_the_start(void **state)
{
    start s;
    Weft__StageEdge *edge, was;
    int64_t sizes[WF_MAX_RANK + 2] = {0};

    (void)state;
    make_start(&s);
    edge = s.body.train_edges[0];
    was = *edge;
    edge->from = WORKERS;
    refuse_start(&s, "an edge");
    *edge = was;
    edge->to = edge->from;
    refuse_start(&s, "an edge");
    *edge = was;
    edge->dtype = 77;
    refuse_start(&s, "type 77");
    *edge = was;
    edge->sizes = sizes;
    edge->n_sizes = WF_MAX_RANK + 1;
    refuse_start(&s, "axes");
    edge->n_sizes = 2;
    sizes[0] = INT64_MIN;
    sizes[1] = INT64_MAX;
    refuse_start(&s, "size");
    sizes[0] = sizes[1] = INT32_MAX;
    refuse_start(&s, "size");
    *edge = was;
    begin_stage();
}

static void a_start_comes_once(void **state)
{
    snapshot was;
    start s;
    wf_msg *m;

    (void)state;
    begin_stage();
    was = look(middle());
    make_start(&s);
    s.body.stage = WF_STAGES_MOST; /* for which there is no room */
    send_body(0, WF_STAGE_START, 0, &s.body.base);
    assert_refused(was, "has stage 64 of 3 begin here");
    make_start(&s);
    send_body(0, WF_STAGE_START, 0, &s.body.base);
    assert_refused(was, "a start of stage 1, generation 4, after one of that");
    m = message(0, WF_STAGE_START);
    m->head.generation = GENERATION - 1;
    assert_int_equal(wf_control_put(m, &s.body.base, NULL), WF_OK);
    send(0, m);
    assert_refused(was, "a start of stage 1, generation 3, after one of that");
    assert_int_equal(w.heard[WF_STAGE_READY], 1);
}

static void no_other_worker_ends_a_stage(void **state)
{
    snapshot was;
    wf_msg *m;

    (void)state;
    begin_stage();
    was = look(middle());
    send(2, message(2, WF_STAGE_STOP));
    assert_refused(was, "stage_stop to stage 1");
    m = message(0, WF_STAGE_STOP);
    m->head.generation = GENERATION + 1;
    send(0, m);
    assert_dropped(was);
    m = message(0, WF_STAGE_STOP);
    m->head.job = JOB + 1;
    send(0, m);
    assert_dropped(was);
    send(0, message(0, WF_STAGE_STOP));
    assert_null(middle());
}

/* A message names the stage that sends it, which is on that worker, and the one that it is for. */
static void no_message_is_of_another_stage(void **state)
{
    static const struct {
        uint32_t from, stage, to;
    } cases[] = {{0, 1, 1}, {0, 2, 1}, {0, 3, 1}, {0, UINT32_MAX, 1}, {2, 0, 1},
                 {2, 1, 1}, {0, 0, 0}, {0, 0, 2}, {0, 0, UINT32_MAX}};
    Weft__StageRound body = WEFT__STAGE_ROUND__INIT;
    uint32_t records[] = {RECORDS};
    snapshot was;

    (void)state;
    begin_stage();
    was = look(middle());
    body.trains = true;
    body.records = records;
    body.n_records = 1;
    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        wf_msg *m = message(cases[i].from, WF_STAGE_ROUND);

        m->head.step = 1;
        m->head.view = cases[i].stage;
        m->head.map = cases[i].to;
        assert_int_equal(wf_control_put(m, &body.base, NULL), WF_OK);
        send(cases[i].from, m);
        assert_dropped(was);
    }
    send_round(0, 1, true, 1, RECORDS);
    assert_true(middle()->now.busy);
}

/* ---- rounds ---- */

static void a_round_that_cannot_be_is_refused(void **state)
{
    snapshot was;
    wf_msg *m;

    (void)state;
    send_round(0, 1, true, BATCHES, RECORDS); /* before there is a stage */
    assert_int_equal(w.says, WF_OK);
    assert_null(middle());
    begin_stage();
    was = look(middle());
    send_round(2, 1, true, BATCHES, RECORDS);
    assert_refused(was, "stage_round to stage 1");
    send_round(0, 0, true, BATCHES, RECORDS);
    assert_refused(was, "after round 0");
    send_round(0, 2, true, BATCHES, RECORDS);
    assert_refused(was, "after round 0");
    send_round(0, 1, true, 0, 0);
    assert_refused(was, "of 0 micro-batches");
    send_round(0, 1, true, WF_STAGE_ROUND_MOST + 1, 1);
    assert_refused(was, "micro-batches");
    send_round(0, 1, true, BATCHES, RECORDS + 1);
    assert_refused(was, "round 1");
    send_round(0, 1, true, BATCHES, 0);
    assert_refused(was, "round 1");
    m = message(0, WF_STAGE_ROUND);
    m->head.step = 1;
    memset(wf_msg_control(m, 40), 0xff, 40);
    send(0, m);
    assert_refused(was, "");
    send_round(0, 1, true, BATCHES, RECORDS);
    assert_int_equal(w.says, WF_OK);
    assert_true(middle()->now.busy);
    was = look(middle());
    send_round(0, 1, true, BATCHES, RECORDS);
    assert_refused(was, "after round 1");
    send_round(0, 2, true, BATCHES, RECORDS);
    assert_refused(was, "after round 1");
}

static void what_others_are_told_is_refused_here(void **state)
{
    static const uint16_t kinds[] = {WF_STAGE_READY, WF_STAGE_DONE, WF_STAGE_SAVED};
    Weft__Outcome outcome = WEFT__OUTCOME__INIT;
    Weft__Tune tune = WEFT__TUNE__INIT;
    snapshot was;

    (void)state;
    begin_stage();
    was = look(middle());
    for (size_t i = 0; i < WF_COUNT(kinds); i++)
        for (uint32_t from = 0; from < WORKERS; from += 2) {
            send_body(from, kinds[i], 0, &outcome.base);
            assert_refused(was, "to stage 1");
        }
    tune.learning_rate = 0.5;
    send_body(2, WF_STAGE_TUNE, 0, &tune.base);
    assert_refused(was, "stage_tune to stage 1");
}

/* ---- values ---- */

static void a_value_that_cannot_be_is_refused(void **state)
{
    size_t forward, back, other;
    uint32_t in = edge_between(0, 1, &forward), gradient = edge_between(2, 1, &back);
    uint32_t elsewhere = edge_between(1, 2, &other);
    uint32_t n_edges = (uint32_t)w.prepared->start.n_train_edges;
    const struct {
        value v;
        const char *said;
    } bad[] = {
        /* from stage 2, and of edges that do not come from stage 0 to this one */
        {{2, 1, 0, in, forward, WF_CODEC_BYTES, 0, 0}, "it goes between other stages"},
        {{0, 1, 0, gradient, back, WF_CODEC_BYTES, 0, 0}, "it goes between other stages"},
        {{0, 1, 0, elsewhere, other, WF_CODEC_BYTES, 0, 0}, "it goes between other stages"},
        {{0, 1, 0, n_edges, forward, WF_CODEC_BYTES, 0, 0}, "it goes between other stages"},
        {{0, 1, 0, UINT32_MAX, forward, WF_CODEC_BYTES, 0, 0}, "it goes between other stages"},
        {{0, 1, BATCHES, in, forward, WF_CODEC_BYTES, 0, 0}, "micro-batch 4 of 4"},
        {{0, 1, UINT32_MAX, in, forward, WF_CODEC_BYTES, 0, 0}, "there are not so many"},
        {{0, 1, 0, in, forward - 1, WF_CODEC_BYTES, 0, 0}, "bytes"},
        {{0, 1, 0, in, 0, WF_CODEC_BYTES, 0, 0}, "bytes"},
        {{0, 1, 0, in, 1 << 20, WF_CODEC_BYTES, 0, 0}, "more bytes than an edge brings"},
        {{0, 1, 0, in, forward, WF_CODEC_F32, 0, 0}, ""},
        {{0, 1, 0, in, forward, WF_CODEC_BYTES, 0, 2}, ""},
        {{0, 3, 0, in, forward, WF_CODEC_BYTES, 0, 0}, "it does not follow"},
    };
    snapshot was;

    (void)state;
    begin_stage();
    send_round(0, 1, true, BATCHES, RECORDS);
    was = look(middle());
    for (size_t i = 0; i < WF_COUNT(bad); i++) {
        send_value(bad[i].v);
        assert_refused(was, bad[i].said);
    }
}

/* One of another time changes nothing; the right one counts once. */
static void a_value_counts_once_in_its_round(void **state)
{
    size_t forward;
    uint32_t in = edge_between(0, 1, &forward);
    const value right = {0, 1, 0, in, forward, WF_CODEC_BYTES, 0, 0};
    value v = right;
    snapshot was;

    (void)state;
    send_value(right); /* before there is a stage */
    assert_int_equal(w.says, WF_OK);
    begin_stage();
    send_round(0, 1, true, BATCHES, RECORDS);
    was = look(middle());
    v.round = 0;
    send_value(v);
    assert_dropped(was); /* it is late */
    v = right;
    v.generation = GENERATION - 1;
    send_value(v);
    assert_dropped(was);
    send_value(right);
    assert_int_equal(w.says, WF_OK);
    assert_int_equal(look(middle()).held, was.held + 1);
    was = look(middle());
    send_value(right);
    assert_refused(was, "comes twice");
    work(); /* it is used, */
    was = look(middle());
    assert_int_equal(was.forwards, 1);
    send_value(right); /* and does not come again */
    assert_refused(was, "comes twice");
}

/* What is kept for the next round is bounded, and wrong values in it stop nothing. */
static void values_that_come_early_are_looked_at(void **state)
{
    size_t forward, back;
    uint32_t in = edge_between(0, 1, &forward), gradient = edge_between(2, 1, &back);
    value v = {0, 1, 0, in, forward, WF_CODEC_BYTES, 0, 0};
    snapshot was;

    (void)state;
    begin_stage();
    was = look(middle());
    v.edge = gradient; /* which is worker 2's to send */
    v.bytes = back;
    send_value(v);
    assert_refused(was, "it goes between other stages");
    v = (value){2, 1, 0, in, forward, WF_CODEC_BYTES, 0, 0};
    send_value(v);
    assert_refused(was, "it goes between other stages");
    v = (value){0, 1, 0, in, 1 << 20, WF_CODEC_BYTES, 0, 0};
    send_value(v);
    assert_refused(was, "more bytes than an edge brings");
    v = (value){0, 1, UINT32_MAX, in, forward, WF_CODEC_BYTES, 0, 0};
    send_value(v);
    assert_refused(was, "there are not so many");
    v = (value){0, 1, 0, in, forward - 4, WF_CODEC_BYTES, 0, 0};
    send_value(v); /* how many records there are is not known yet */
    assert_int_equal(w.says, WF_OK);
    assert_int_equal(middle()->n_early, 1);
    was = look(middle());
    v.bytes = forward;
    send_value(v);
    assert_refused(was, "comes twice");
    v.batch = 1;
    send_value(v);
    v.batch = BATCHES; /* the round has not so many */
    send_value(v);
    assert_int_equal(middle()->n_early, 3);
    send_round(0, 1, true, BATCHES, RECORDS);
    assert_int_equal(w.says, WF_OK);
    assert_int_equal(middle()->n_early, 0);
    assert_int_equal(look(middle()).held, 1); /* of micro-batch 1 */
    assert_true(middle()->now.busy && !middle()->is_over);
    v.batch = 0;
    send_value(v);
    assert_int_equal(w.says, WF_OK);
    work();
    assert_int_equal(middle()->now.schedule.forwards, 2);
}

/* A whole step goes through, after all of it. */
static void a_step_is_made_all_the_same(void **state)
{
    (void)state;
    begin_stage();
    send_round(0, 1, true, BATCHES, RECORDS);
    send_all(1, 0);
    work();
    assert_int_equal(w.heard[WF_STAGE_DONE], 1);
    assert_false(middle()->now.busy);
    assert_int_equal(middle()->own->acked, 1);
    assert_int_equal(w.heard[WF_STAGE_SUMS], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_start_that_cannot_be_is_answered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_edge_that_cannot_be_refuses_the_start, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_start_comes_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_message_is_of_another_stage, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_other_worker_ends_a_stage, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_round_that_cannot_be_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_others_are_told_is_refused_here, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_value_that_cannot_be_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_value_counts_once_in_its_round, set_up, tear_down),
        cmocka_unit_test_setup_teardown(values_that_come_early_are_looked_at, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_step_is_made_all_the_same, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
