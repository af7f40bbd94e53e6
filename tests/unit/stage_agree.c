/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/stage_agree.c - a stage of a step that all stages apply or none does: it sends what
 * its gradients come to, and waits for the first with its update. What it is sent that cannot be is
 * refused, and the stage is as it was. */
#include "stage_world.h"

#include <math.h>

static const char CLIPS[] = "optimizer: {sgd: {learning_rate: 1, global_clipnorm: 0.5}}\n";
static const char SKIPS[] = "optimizer: {sgd: {learning_rate: 1}}\non_nan: skip\n";
enum { A_BYTE = 0x3f, NAN_BYTE = 0xff }; /* floats of such bytes are 0.747, and NaN */

static int set_up_clips(void **state)
{
    more = CLIPS;
    return set_up(state);
}

static int set_up_skips(void **state)
{
    more = SKIPS;
    return set_up(state);
}

static void send_apply(uint32_t from, uint32_t round, bool drops, double norm)
{
    Weft__StageApply body = WEFT__STAGE_APPLY__INIT;

    body.drops = drops;
    body.norm = norm;
    send_body(from, WF_STAGE_APPLY, round, &body.base);
}

/* The weights of the stage's variables, as one sum. */
static double weights(void)
{
    const Weft__Start *of = middle()->conf.start;
    double sum = 0;

    for (uint32_t i = 0; i < of->n_variables; i++) {
        const float *x;
        size_t n = 1;

        if (of->variables[i]->stage != 1)
            continue;
        x = wf_exchange_weights(middle()->own, 0, i);
        for (size_t k = 0; k < of->variables[i]->n_dims; k++)
            n *= (size_t)of->variables[i]->dims[k];
        for (size_t k = 0; k < n; k++)
            sum += (double)x[k] * (double)(k + 1);
    }
    return sum;
}

static void a_stage_waits_for_the_norm_of_all(void **state)
{
    double before, sum = 0;
    snapshot was;

    (void)state;
    begin_stage();
    before = weights();
    send_apply(0, 1, false, 1); /* no round is under way */
    assert_refused(look(middle()), "stage_apply of round 1");
    send_round(0, 1, true, BATCHES, RECORDS);
    was = look(middle());
    send_apply(0, 1, false, 1); /* its gradients are not there */
    assert_refused(was, "which is none that is due");
    send_all(1, A_BYTE);
    work();
    assert_int_equal(w.heard[WF_STAGE_SUMS], 1);
    assert_true(w.sums->finite);
    assert_int_equal(w.sums->n_squares, 2); /* a kernel and a bias */
    for (size_t i = 0; i < w.sums->n_squares; i++)
        sum += w.sums->squares[i];
    assert_true(sum > 0.25); /* it would be clipped by its own norm */
    was = look(middle());
    assert_true(was.summed && !was.decided && was.busy);
    assert_int_equal(w.heard[WF_STAGE_DONE], 0);
    send_apply(2, 1, false, 1);
    assert_refused(was, "stage_apply to stage 1");
    send_apply(0, 2, false, 1);
    assert_refused(was, "stage_apply of round 2");
    send_apply(0, 0, false, 1);
    assert_dropped(was); /* it is late */
    send_apply(0, 1, false, -1);
    assert_refused(was, "cannot end so");
    send_apply(0, 1, false, (double)NAN);
    assert_refused(was, "cannot end so");
    send_apply(0, 1, true, 1); /* no step of this job is dropped */
    assert_refused(was, "cannot end so");
    assert_true(weights() == before);
    send_apply(0, 1, false, 2 * sqrt(sum));
    assert_int_equal(w.says, WF_OK);
    was = look(middle());
    send_apply(0, 1, false, 1);
    assert_refused(was, "which is none that is due");
    work();
    assert_int_equal(w.heard[WF_STAGE_DONE], 1);
    assert_int_equal(middle()->own->acked, 1);
    assert_true(weights() != before);
}

static void a_step_is_dropped_by_all(void **state)
{
    double before;

    (void)state;
    begin_stage();
    before = weights();
    for (uint32_t round = 1; round <= 2;
         round++) { /* this stage's gradients are bad; another's are */
        snapshot was;

        send_round(0, round, true, BATCHES, RECORDS);
        send_all(round, round == 1 ? NAN_BYTE : A_BYTE);
        work();
        assert_int_equal(w.heard[WF_STAGE_SUMS], round);
        assert_int_equal(w.sums->finite, round == 2);
        assert_int_equal(w.sums->n_squares, 0);
        was = look(middle());
        if (round == 1) {
            send_apply(0, round, false, 0);
            assert_refused(was, "cannot end so");
        }
        send_apply(0, round, true, 0);
        assert_int_equal(w.says, WF_OK);
        work();
        assert_int_equal(w.heard[WF_STAGE_DONE], round);
        assert_string_equal(w.said, "");
        assert_int_equal(middle()->own->acked, round);
        assert_true(weights() == before);
    }
    send_round(0, 3, true, BATCHES, RECORDS); /* nothing is left of them */
    send_all(3, A_BYTE);
    work();
    assert_true(w.sums->finite);
    send_apply(0, 3, false, 0);
    work();
    assert_int_equal(w.heard[WF_STAGE_DONE], 3);
    assert_true(isfinite(weights()) && weights() != before);
}

/* What a worker that is lost leaves the others waiting for never comes. */
static void a_stage_that_waits_hears_of_a_worker_that_is_lost(void **state)
{
    double before;
    wf_err err;

    (void)state;
    begin_stage();
    before = weights();
    send_round(0, 1, true, BATCHES, RECORDS);
    send_all(1, A_BYTE);
    work();
    assert_true(look(middle()).summed);
    assert_int_equal(wf_stage_on_link(middle(), w.at_middle[2], false, &err), WF_OK);
    turn();
    assert_true(middle()->is_over && !middle()->now.busy);
    assert_int_equal(w.heard[WF_STAGE_DONE], 1);
    assert_non_null(strstr(w.said, "worker/2, which had stage 2 of 3, is gone"));
    send_apply(0, 1, false, 1);
    work();
    assert_int_equal(w.says, WF_OK);
    assert_int_equal(middle()->own->acked, 0);
    assert_true(weights() == before);
}

/* A gradient that is no number ends the round there: nobody is to wait for its sums. */
static void a_bad_gradient_fails_a_step_that_may_not_be_dropped(void **state)
{
    wf_err err;

    (void)state;
    begin_stage();
    send_round(0, 1, true, BATCHES, RECORDS);
    send_all(1, NAN_BYTE);
    while (wf_stage_can_work(middle()))
        assert_int_equal(wf_stage_work(middle(), &err), WF_OK);
    turn();
    assert_int_equal(w.heard[WF_STAGE_SUMS], 0);
    assert_int_equal(w.heard[WF_STAGE_DONE], 1);
    assert_non_null(strstr(w.said, "stage 1 of 3, on worker/1: the gradient of \"b/"));
}

/* An evaluation has no gradients. */
static void an_evaluation_waits_for_nobody(void **state)
{
    snapshot was;

    (void)state;
    begin_stage();
    send_round(0, 1, false, BATCHES, RECORDS);
    was = look(middle());
    send_apply(0, 1, false, 1);
    assert_refused(was, "which is none that is due");
    assert_false(wf_stage_agrees(middle()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_stage_waits_for_the_norm_of_all, set_up_clips, tear_down),
        cmocka_unit_test_setup_teardown(a_step_is_dropped_by_all, set_up_skips, tear_down),
        cmocka_unit_test_setup_teardown(a_stage_that_waits_hears_of_a_worker_that_is_lost,
                                        set_up_clips, tear_down),
        cmocka_unit_test_setup_teardown(a_bad_gradient_fails_a_step_that_may_not_be_dropped,
                                        set_up_clips, tear_down),
        cmocka_unit_test_setup_teardown(an_evaluation_waits_for_nobody, set_up_skips, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
