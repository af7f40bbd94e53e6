/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/stage_wire_first.c - the same of the first stage, which others report to. */
#include "stage_world.h"

#include <math.h>

static wf_status no_records(void *arg, bool trains, const wf_batch **out, wf_err *err)
{
    (void)arg, (void)trains, (void)out;
    return wf_fail(err, WF_INVALID, NULL, "nothing is computed here");
}

static wf_status no_results(void *arg, uint32_t batch, const void *const outputs[], wf_err *err)
{
    (void)arg, (void)batch, (void)outputs;
    return wf_fail(err, WF_INVALID, NULL, "nothing is computed here");
}

/* The evaluation, as a prediction has it: the files of a checkpoint are of no matter here. */
static void begin_first(void)
{
    const Weft__Start *job = &w.prepared->start;
    wf_peer *second = w.to_middle[0], *third;
    wf_err err;

    third = wf_memnet_dial(&w.nets, w.net[0], (wf_task){WF_ROLE_WORKER, 2}, address_of(2));
    turn();
    w.of_first = *job;
    w.of_first.prediction = "{}";
    assert_int_equal(
        wf_onnx_decode(job->eval_graph.data, job->eval_graph.len, NULL, &w.graph, &err), WF_OK);
    w.links = (wf_stage_links){.rows = calloc(WORKERS, sizeof *w.links.rows), .n = WORKERS};
    w.links.rows[1].peer = second;
    w.links.rows[2].peer = third;
    assert_int_equal(wf_stage_new(&(wf_stage_conf){.start = &w.of_first,
                                                   .links = &w.links,
                                                   .device = &wf_cpu,
                                                   .pool = w.pool,
                                                   .read = no_records,
                                                   .predicted = w.graph,
                                                   .take = no_results},
                                  &w.first, &err),
                     WF_OK);
    w.first->exchange = (wf_exchange_conf){.net = w.net[0], .job = JOB, .generation = GENERATION};
    w.first->is_open = true;
}

static void begin_round(void)
{
    const uint32_t records[BATCHES] = {RECORDS, RECORDS, RECORDS, RECORDS};

    assert_int_equal(
        wf_stage_begin_round(w.first, &(wf_stage_round){.records = records, .n = BATCHES}, NULL),
        WF_OK);
    turn();
}

static void the_first_stage_takes_no_orders(void **state)
{
    static const uint16_t kinds[] = {WF_STAGE_ROUND, WF_STAGE_SAVE,  WF_STAGE_TUNE, WF_STAGE_START,
                                     WF_STAGE_STOP,  WF_STAGE_SAVED, WF_STAGE_APPLY};
    Weft__StageRound none = WEFT__STAGE_ROUND__INIT;
    Weft__Outcome outcome = WEFT__OUTCOME__INIT;
    snapshot was;
    wf_msg *m;

    (void)state;
    begin_first();
    begin_round();
    was = look(w.first);
    for (size_t i = 0; i < WF_COUNT(kinds); i++)
        for (uint32_t from = 1; from < WORKERS; from++) {
            if (kinds[i] == WF_STAGE_STOP)
                send(from, message(from, kinds[i]));
            else
                send_body(from, kinds[i], 1, &none.base);
            assert_refused(was, "to stage 0");
        }
    send_body(1, WF_STAGE_DONE, 0, &outcome.base); /* of another round */
    assert_dropped(was);
    m = message(2, WF_STAGE_DONE);
    m->head.step = 1;
    memset(wf_msg_control(m, 16), 0xff, 16);
    send(2, m);
    assert_refused(was, "");
    m = message(1, WF_STAGE_READY);
    m->head.generation = GENERATION - 1;
    assert_int_equal(wf_control_put(m, &outcome.base, NULL), WF_OK);
    send(1, m);
    assert_dropped(was);
    send_body(1, WF_STAGE_READY, 1, &outcome.base);
    assert_int_equal(look(w.first).ready, 1);
    send_body(1, WF_STAGE_DONE, 1, &outcome.base);
    assert_int_equal(look(w.first).done, 1);
    outcome.status = 4000000000u; /* which no error has */
    outcome.what = "no";
    send_body(2, WF_STAGE_DONE, 1, &outcome.base);
    assert_int_equal(w.says, WF_INVALID);
    assert_true(w.first->is_over);
}

static void results_that_cannot_be_are_refused(void **state)
{
    const Weft__Start *job = &w.prepared->start;
    const size_t bytes = sizeof(float);
    uint32_t result = 0;
    snapshot was;
    value v;

    (void)state;
    while (!job->eval_edges[result]->is_result)
        result++;
    assert_int_equal(job->eval_edges[result]->from, 2);
    assert_int_equal(job->eval_edges[result]->n_sizes, 0);
    begin_first();
    begin_round();
    was = look(w.first);
    v = (value){1, 1, 0, result, bytes, WF_CODEC_BYTES, 0, 0};
    send_value(v);
    assert_refused(was, "it goes between other stages");
    v = (value){2, 1, BATCHES, result, bytes, WF_CODEC_BYTES, 0, 0};
    send_value(v);
    assert_refused(was, "micro-batch 4 of 4");
    v = (value){2, 1, 0, result, bytes + 1, WF_CODEC_BYTES, 0, 0};
    send_value(v);
    assert_refused(was, "bytes");
    v = (value){2, 1, 0, (uint32_t)job->n_eval_edges, bytes, WF_CODEC_BYTES, 0, 0};
    send_value(v);
    assert_refused(was, "it goes between other stages");
    v = (value){2, 1, 0, result, bytes, WF_CODEC_BYTES, 0, 0};
    send_value(v);
    assert_int_equal(w.says, WF_OK);
    assert_int_equal(look(w.first).held, was.held + 1);
    was = look(w.first);
    send_value(v);
    assert_refused(was, "comes twice");
}

#define LARGE 0x1p57 /* what is added to it is rounded to multiples of 32 */

static void send_sums(uint32_t from, uint32_t round, bool finite, size_t n, double first)
{
    double squares[4] = {first, 17, 17, 17};
    Weft__StageSums body = WEFT__STAGE_SUMS__INIT;

    body.finite = finite;
    body.n_squares = n;
    body.squares = squares;
    send_body(from, WF_STAGE_SUMS, round, &body.base);
}

/* In the order of variables, as one worker adds them up: here another order gives another sum. */
static void expect_norm(void)
{
    const double *all = w.first->sums.all;
    uint32_t n = (uint32_t)w.prepared->start.n_variables;
    double sum = 0, other = 0;

    for (uint32_t i = 0; i < n; i++) {
        sum += all[i];
        other += all[n - 1 - i];
    }
    assert_true(sum != other);
    assert_true(w.first->now.norm == sqrt(sum) && w.first->now.norm != sqrt(other));
}

/* As if the round were a step of a job with global_clipnorm. */
static void sums_are_looked_at_and_added_up_in_order(void **state)
{
    const Weft__Start *job = &w.prepared->start;
    snapshot was;

    (void)state;
    begin_first();
    begin_round();
    was = look(w.first);
    send_sums(1, 1, true, 0, 0);
    assert_refused(was, "which is none that is due"); /* no stage waits for others */
    w.first->now.trains = true;
    w.first->sums.squares = calloc(job->n_variables, sizeof(double));
    w.first->sums.all = calloc(job->n_variables, sizeof(double));
    was = look(w.first);
    send_sums(1, 2, true, 2, 1);
    assert_refused(was, "which is none that is due");
    send_sums(1, 0, true, 2, 1);
    assert_dropped(was); /* it is late */
    send_sums(1, 1, true, 1, 1);
    assert_refused(was, "1 sums of stage 1");
    send_sums(1, 1, true, 3, 1);
    assert_refused(was, "3 sums of stage 1");
    send_sums(1, 1, true, 2, -1);
    assert_refused(was, "that cannot be");
    send_sums(1, 1, true, 2, (double)INFINITY);
    assert_refused(was, "that cannot be");
    send_sums(1, 1, false, 0, 0); /* that stage would have failed the step */
    assert_refused(was, "that cannot be");
    send_sums(1, 1, true, 2, LARGE);
    assert_int_equal(w.says, WF_OK);
    was = look(w.first);
    assert_int_equal(was.summed, 1);
    send_sums(1, 1, true, 2, LARGE);
    assert_refused(was, "which is none that is due");
    send_sums(2, 1, true, 2, 17);
    assert_false(wf_stage_can_decide(w.first)); /* its own are not there */
    for (uint32_t i = 0; i < job->n_variables; i++) {
        assert_true((w.first->sums.all[i] > 0) == (job->variables[i]->stage > 0));
        w.first->sums.squares[i] = 15;
    }
    assert_int_equal(wf_stage_end_sums(w.first, NULL), WF_OK);
    assert_true(wf_stage_can_decide(w.first));
    assert_int_equal(wf_stage_decide(w.first, NULL), WF_OK);
    turn();
    expect_norm();
    assert_int_equal(w.heard[WF_STAGE_APPLY], 1); /* by worker 2; worker 1 has no such stage */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_first_stage_takes_no_orders, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sums_are_looked_at_and_added_up_in_order, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(results_that_cannot_be_are_refused, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
