/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/ps_together.c - steps that played workers make together: one update each, when all
 * have pushed, or all but the backups. */
#include "tests/unit/ps_players.h"

/* Asks for the weights of a step that count on all own steps before it. */
static void pull(player *p, uint32_t step, uint32_t clock)
{
    wf_msg *m = NULL;

    assert_int_equal(wf_net_msg(p->net, WF_PULL, &m, NULL), WF_OK);
    assert_int_equal(
        wf_pull_put(m, (wf_pull_body){.clock = clock, .after = step - 1}, NULL, 0, NULL), WF_OK);
    m->head.request = step;
    m->head.step = step;
    send_stamped(p, WF_LANE_DATA, 1, m);
}

static void begin_together(world *w, uint32_t n, uint32_t backups)
{
    static const uint64_t incarnations[] = {11, 22, 33};

    w->bounded = 1;
    w->together = true;
    w->backups = backups;
    set_up_job(w, incarnations, n);
    for (uint32_t i = 0; i < n; i++) {
        enter(w, i, i, incarnations[i]);
        list_one_slice(&w->workers[i]);
        assert_int_equal(join(w, &w->workers[i], 1), 1);
    }
}

static void a_step_is_one_update_and_waits_for_all(void **state)
{
    world *w = *state;

    begin_together(w, 3, 0);
    push_value(&w->workers[2], 1, 1, 8, 3);
    push_value(&w->workers[0], 1, 1, 24, 1);
    pull(&w->workers[0], 2, 2);
    turn(w, 20);
    holds(w, 0, 0);
    assert_int_equal(count(&w->workers[0], WF_PUSH_OK), 0);
    assert_int_equal(count(&w->workers[0], WF_WEIGHTS), 0);
    push_value(&w->workers[0], 1, 1, 24, 1); /* again, as over a fresh link */
    turn(w, 20);
    holds(w, 0, 0);
    push_value(&w->workers[1], 1, 1, 0, 0); /* dropped by its worker */
    turn(w, 20);
    holds(w, 1, -rate * (24 * 1 + 8 * 3) / 32);
    for (int i = 0; i < 3; i++)
        assert_int_equal(count(&w->workers[i], WF_PUSH_OK), 1);
    assert_int_equal(count(&w->workers[0], WF_WEIGHTS), 1);
    push_value(&w->workers[0], 1, 1, 24, 1); /* and once more, when it was applied */
    turn(w, 20);
    holds(w, 1, -rate * 1.5);
    assert_int_equal(count(&w->workers[0], WF_PUSH_OK), 2);
}

static void who_is_waited_for_is_named(void **state)
{
    world *w = *state;
    wf_vitals v = {0};

    begin_together(w, 2, 0);
    push_value(&w->workers[1], 1, 1, 8, 1);
    turn(w, 500);
    wf_ps_vitals(w->ps, &v);
    assert_int_equal(v.waits.whom.index, 0);
    assert_string_equal(v.waits.what, "its step 1, which worker/1 waits for (bsp)");
}

static void nobody_waits_for_what_one_who_left_did_not_begin(void **state)
{
    world *w = *state;

    begin_together(w, 2, 0);
    send_clock(&w->workers[1], WF_CLOCK_LEAVES, 2, 1); /* its step 1 is on its way */
    turn(w, 20);
    push_value(&w->workers[0], 1, 1, 8, 1);
    turn(w, 20);
    holds(w, 0, 0);
    push_value(&w->workers[1], 1, 1, 8, 3);
    turn(w, 20);
    holds(w, 1, -rate * 2);
    push_value(&w->workers[0], 2, 2, 8, 4);
    turn(w, 20);
    holds(w, 2, -rate * 6);
    assert_int_equal(join(w, &w->workers[1], 2), 3); /* after what is applied */
}

static void what_a_dead_worker_pushed_is_given_back(void **state)
{
    world *w = *state;

    begin_together(w, 3, 0);
    push_value(&w->workers[0], 1, 1, 8, 1);
    push_value(&w->workers[2], 1, 1, 8, 1000);
    turn(w, 20);
    say_view(w, VIEW + 1, (uint64_t[]){11, 22}, 2);
    push_value(&w->workers[1], 1, 1, 8, 3);
    turn(w, 20);
    holds(w, 1, -rate * 2);
}

static uint32_t decided(const player *p, uint32_t *n)
{
    uint64_t workers[WF_MAX_CONTRIBUTORS];
    wf_decision d = {.workers = workers};

    for (uint32_t i = 0; i < p->n; i++)
        if (p->got[i]->head.kind == WF_DECIDED)
            assert_int_equal(wf_decided_get(p->got[i], &d, NULL), WF_OK);
    *n = d.n;
    return d.clock;
}

static void a_backup_is_not_waited_for_and_its_step_is_left_out(void **state)
{
    world *w = *state;
    uint32_t n = 0;

    begin_together(w, 3, 1);
    push_value(&w->workers[0], 1, 1, 8, 1);
    turn(w, 20);
    holds(w, 0, 0);
    push_value(&w->workers[2], 1, 1, 8, 3);
    turn(w, 20);
    holds(w, 1, -rate * 2);
    assert_int_equal(decided(&w->workers[1], &n), 1);
    assert_int_equal(n, 2);
    push_value(&w->workers[1], 1, 1, 8, 1000);
    turn(w, 20);
    holds(w, 1, -rate * 2);
    assert_int_equal(count(&w->workers[1], WF_PUSH_OK), 1);
    /* It goes on with the others, and its next step counts. */
    push_value(&w->workers[1], 2, 2, 8, 5);
    push_value(&w->workers[0], 2, 2, 8, 1);
    turn(w, 20);
    holds(w, 2, -rate * 5);
}

static void say_decided(player *p, uint32_t clock, uint64_t worker)
{
    wf_decision d = {clock, clock - 1, 1, &worker};
    wf_msg *m = NULL;

    assert_int_equal(wf_net_msg(p->net, WF_DECIDED, &m, NULL), WF_OK);
    assert_int_equal(wf_decided_put(m, &d, NULL), WF_OK);
    send_stamped(p, WF_LANE_CONTROL, 0, m);
}

/* The ps with the clock slice had its part; here it is on its way. */
static void who_was_decided_for_is_waited_for_and_named(void **state)
{
    world *w = *state;
    player *first = &w->workers[0], *second = &w->workers[1];
    wf_vitals v = {0};

    w->first_on = 1;
    first->slice = second->slice = 1;
    begin_together(w, 2, 1);
    say_decided(first, 1, 22);
    pull(first, 1, 2); /* it has come in behind clock 1, of which it has no part */
    turn(w, 20);
    assert_int_equal(count(first, WF_WEIGHTS), 0);
    wf_ps_vitals(w->ps, &v);
    assert_int_equal(v.waits.whom.index, 1);
    assert_string_equal(v.waits.what, "its step 1, which worker/0 waits for (bsp)");
    push_value(second, 1, 1, 8, 3);
    turn(w, 20);
    assert_int_equal(count(first, WF_WEIGHTS), 1);
    wf_ps_vitals(w->ps, &v);
    assert_int_equal(v.waits.whom.role, WF_ROLE_NONE);
}

/* A worker that begins hears the newest decision first, and passes it on. */
static void a_decision_waits_for_the_one_before_it(void **state)
{
    world *w = *state;
    player *first = &w->workers[0], *second = &w->workers[1];

    w->first_on = 1;
    first->slice = second->slice = 1;
    begin_together(w, 2, 1);
    push_value(second, 1, 1, 8, 3);
    push_value(second, 2, 2, 8, 5);
    say_decided(first, 2, 22);
    pull(first, 1, 3);
    turn(w, 20);
    assert_int_equal(count(second, WF_PUSH_OK), 0);
    assert_int_equal(count(first, WF_WEIGHTS), 0);
    say_decided(first, 1, 22);
    turn(w, 20);
    holds(w, 2, -rate * 8);
    assert_int_equal(count(first, WF_WEIGHTS), 1);
}

/* Else the master would never give up a worker whose own part does not come. */
static void nobody_is_said_to_wait_for_itself(void **state)
{
    world *w = *state;
    player *first = &w->workers[0];
    wf_vitals v = {0};

    w->first_on = 1;
    first->slice = w->workers[1].slice = 1;
    begin_together(w, 2, 1);
    say_decided(first, 1, 11);
    pull(first, 1, 2);
    turn(w, 20);
    assert_int_equal(count(first, WF_WEIGHTS), 0);
    wf_ps_vitals(w->ps, &v);
    assert_int_equal(v.waits.whom.role, WF_ROLE_NONE);
}

static void a_push_without_a_clock_and_a_decision_for_no_backups_change_nothing(void **state)
{
    world *w = *state;

    begin_together(w, 2, 0);
    push_value(&w->workers[0], 1, 0, 8, 1);
    say_decided(&w->workers[1], 1, 11);
    turn(w, 20);
    holds(w, 0, 0);
    assert_int_equal(count(&w->workers[0], WF_PUSH_OK), 0);
    push_value(&w->workers[0], 1, 1, 8, 1);
    push_value(&w->workers[1], 1, 1, 8, 1);
    turn(w, 20);
    holds(w, 1, -rate);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_step_is_one_update_and_waits_for_all),
        TEST(who_is_waited_for_is_named),
        TEST(nobody_waits_for_what_one_who_left_did_not_begin),
        TEST(what_a_dead_worker_pushed_is_given_back),
        TEST(a_backup_is_not_waited_for_and_its_step_is_left_out),
        TEST(who_was_decided_for_is_waited_for_and_named),
        TEST(a_decision_waits_for_the_one_before_it),
        TEST(nobody_is_said_to_wait_for_itself),
        TEST(a_push_without_a_clock_and_a_decision_for_no_backups_change_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
