/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/stage_wire_first.c - the same of the first stage, which others report to. */
#include "stage_world.h"

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
    static const uint16_t kinds[] = {WF_STAGE_ROUND, WF_STAGE_SAVE, WF_STAGE_TUNE,
                                     WF_STAGE_START, WF_STAGE_STOP, WF_STAGE_SAVED};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_first_stage_takes_no_orders, set_up, tear_down),
        cmocka_unit_test_setup_teardown(results_that_cannot_be_are_refused, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
