/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exchange_clock.c - a worker among others that wait for each other: it joins before it
 * pulls, leaves, and says so again where it may not have been heard. */
#include "tests/unit/exchange_stage.h"

/* The ps without a slice, which may come to have one, has let this worker in, too. */
static void give_other_clock(world *w, uint32_t clock)
{
    wf_msg *m = NULL;

    assert_int_equal(wf_net_msg(w->worker, WF_CLOCK_OK, &m, NULL), WF_OK);
    assert_int_equal(wf_clock_put(m, (wf_clock_body){WF_CLOCK_JOINS, clock}, NULL), WF_OK);
    m->head.generation = GENERATION;
    m->head.request = w->clock_asked;
    m->head.step = w->step_asked;
    assert_int_equal(wf_exchange_on_message(w->exchange, w->to_other, m, w->now_ns, NULL), WF_OK);
    wf_net_free_msg(w->worker, &m);
}

static void a_pull_waits_until_this_worker_has_joined(void **state)
{
    world *w = *state;

    turn(w, 20);
    assert_int_equal(wf_exchange_want(w->exchange, 1, 41, NULL), WF_OK);
    turn(w, 100);
    assert_int_equal(w->joins, 1);
    assert_int_equal(w->step_asked, 41);
    assert_int_equal(w->n_pulls[MOVING_LIST], 0);
    give_clock(w, 7);
    turn(w, 20);
    assert_int_equal(w->n_pulls[MOVING_LIST], 0);
    give_other_clock(w, 1);
    turn(w, 20);
    assert_int_equal(w->n_pulls[MOVING_LIST], 1);
    assert_int_equal(w->clock, 7);
    push(w, 1);
    assert_int_equal(wf_exchange_want(w->exchange, 0, 42, NULL), WF_OK);
    turn(w, 20);
    assert_int_equal(w->clock, 8);
    /* An evaluation is nobody's step. */
    assert_int_equal(wf_exchange_want(w->exchange, WF_EVAL_SET, 42, NULL), WF_OK);
    turn(w, 20);
    assert_int_equal(w->clock, 0);
    assert_int_equal(wf_exchange_leave(w->exchange, NULL), WF_OK);
    turn(w, 20);
    assert_int_equal(w->got[WF_CLOCK], 2);
    assert_false(wf_exchange_ready(w->exchange, 0));
    assert_int_equal(wf_exchange_leave(w->exchange, NULL), WF_OK);
    give_clock(w, 100); /* an answer that comes too late */
    turn(w, 20);
    assert_int_equal(w->got[WF_CLOCK], 2);
    assert_int_equal(wf_exchange_want(w->exchange, 1, 43, NULL), WF_OK);
    turn(w, 20);
    assert_int_equal(w->joins, 2);
    give_clock(w, 9);
    give_other_clock(w, 1);
    turn(w, 20);
    assert_int_equal(w->clock, 9);
}

static void what_a_clock_said_is_said_again_once_the_ps_lets_this_worker_in(void **state)
{
    world *w = *state;

    w->denies = true;
    turn(w, 20);
    assert_int_equal(wf_exchange_want(w->exchange, 1, 1, NULL), WF_OK);
    turn(w, 100);
    assert_int_equal(w->got[WF_CLOCK], 0);
    w->denies = false;
    turn(w, 1500);
    assert_int_equal(w->joins, 1);
    assert_int_equal(wf_exchange_leave(w->exchange, NULL), WF_OK);
    turn(w, 20);
    assert_int_equal(w->got[WF_CLOCK], 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_pull_waits_until_this_worker_has_joined, begin_bounded,
                                        end),
        cmocka_unit_test_setup_teardown(
            what_a_clock_said_is_said_again_once_the_ps_lets_this_worker_in, begin_bounded, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
