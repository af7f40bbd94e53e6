/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/ps_staleness.c - how stale the gradients of played workers are, and how they wait for
 * each other where that is bounded. */
#include "tests/unit/ps_players.h"

/* The version of a slice in the answers that a worker has got. */
static uint64_t version_of(const player *p, uint32_t slice)
{
    wf_part parts[WF_MAX_PARTS];

    for (uint32_t i = p->n; i > 0; i--) {
        uint32_t n;

        if (p->got[i - 1]->head.kind != WF_WEIGHTS)
            continue;
        assert_int_equal(wf_parts_get(p->got[i - 1], parts, &n, NULL), WF_OK);
        for (uint32_t k = 0; k < n; k++)
            if (parts[k].slice == slice)
                return parts[k].version;
    }
    fail_msg("slice %u has not been answered", slice);
    return 0;
}

static void push_from(player *p, uint32_t step, uint64_t version)
{
    push_part(p, step, (wf_part){.bytes = ELEMENTS * sizeof(float), .version = version});
}

static wf_vitals vitals_of(const world *w)
{
    wf_vitals v = {0};

    wf_ps_vitals(w->ps, &v);
    return v;
}

/* A pull, then `between` pushes of the other worker, then a push of what was pulled. */
static void be_stale(world *w, uint32_t *step, uint32_t *others, uint32_t between)
{
    player *p = &w->workers[0];

    send_pull(p, *step);
    turn(w, 20);
    for (uint32_t i = 0; i < between; i++) {
        send_pull(&w->workers[1], 100 + *others);
        turn(w, 20);
        push_from(&w->workers[1], *others, version_of(&w->workers[1], 0));
        ++*others;
        turn(w, 20);
        forget(&w->workers[1]);
    }
    push_from(p, *step, version_of(p, 0));
    ++*step;
    turn(w, 20);
    forget(p);
}

static void the_updates_between_pull_and_push_are_counted(void **state)
{
    static const uint32_t between[] = {0, 0, 3, 0, 40, 1};
    world *w = *state;
    uint32_t step = 1, others = 1;
    wf_histogram h;

    set_up_job(w, (uint64_t[]){11, 22}, 2);
    enter(w, 0, 0, 11);
    enter(w, 1, 1, 22);
    list_one_slice(&w->workers[0]);
    list_one_slice(&w->workers[1]);
    turn(w, 20);
    for (size_t i = 0; i < sizeof between / sizeof *between; i++)
        be_stale(w, &step, &others, between[i]);
    h = vitals_of(w).staleness;
    assert_int_equal(vitals_of(w).job, JOB);
    assert_int_equal(wf_histogram_count(&h), 6 + 44);
    assert_int_equal(h.n[0], 3 + 44); /* the other's are fresh, each */
    assert_int_equal(h.n[1], 1);
    assert_int_equal(h.n[3], 1);
    assert_int_equal(h.n[wf_histogram_at(40)], 1);
}

static void a_stale_gradient_has_a_smaller_learning_rate(void **state)
{
    world *w = *state;
    player *p;

    w->staleness_aware = true;
    p = begin_with_worker(w);
    for (uint32_t step = 1; step <= 4; step++) /* each of them of the first weights */
        push_value_from(p, step, 0, (wf_push_body){0, 1}, 6);
    turn(w, 20);
    holds(w, 4, -rate * (6 + 6 + 3 + 2));
}

static void a_version_that_never_was_is_refused(void **state)
{
    world *w = *state;
    player *p = begin_with_worker(w);
    wf_histogram h;

    push_from(p, 1, 1);
    turn(w, 20);
    assert_int_equal(count(p, WF_PUSH_OK), 0);
    push_from(p, 1, 0);
    turn(w, 20);
    assert_int_equal(count(p, WF_PUSH_OK), 1);
    h = vitals_of(w).staleness;
    assert_int_equal(wf_histogram_count(&h), 1);
}

/* ---- bounded ---- */

/* Pulls, and pushes if it is answered; whether it is. */
static bool make_step(world *w, player *p, uint32_t step, uint32_t clock)
{
    forget(p);
    send_pull_at(p, step, step, clock);
    turn(w, 20);
    if (count(p, WF_WEIGHTS) == 0)
        return false;
    push_from(p, step, version_of(p, 0));
    turn(w, 20);
    return true;
}

static void begin_bounded(world *w, uint32_t staleness)
{
    w->bounded = 1 + staleness;
    set_up_job(w, (uint64_t[]){11, 22}, 2);
    for (uint32_t i = 0; i < 2; i++) {
        enter(w, i, i, 11 * (i + 1));
        list_one_slice(&w->workers[i]);
        assert_int_equal(join(w, &w->workers[i], 1), 1);
    }
}

/* The first worker is as far ahead as it may be, and has asked for one step more. */
static void run_ahead(world *w)
{
    begin_bounded(w, 2);
    for (uint32_t step = 1; step <= 3; step++)
        assert_true(make_step(w, &w->workers[0], step, step));
    assert_false(make_step(w, &w->workers[0], 4, 4));
}

static void a_worker_that_is_ahead_waits_and_the_ps_says_for_whom(void **state)
{
    world *w = *state;

    run_ahead(w);
    turn(w, 1000);
    assert_int_equal(count(&w->workers[0], WF_WEIGHTS), 0);
    assert_int_equal(vitals_of(w).waits.whom.role, WF_ROLE_WORKER);
    assert_int_equal(vitals_of(w).waits.whom.index, 1);
    assert_non_null(strstr(vitals_of(w).waits.what, "its step 1, which worker/0 waits for"));
    assert_true(make_step(w, &w->workers[1], 1, 1));
    assert_int_equal(count(&w->workers[0], WF_WEIGHTS), 1);
    assert_int_equal(vitals_of(w).waits.whom.role, WF_ROLE_NONE);
}

static void nobody_waits_for_one_who_leaves_and_one_who_joins_begins_with_the_last(void **state)
{
    world *w = *state;

    run_ahead(w);
    send_clock(&w->workers[1], WF_CLOCK_LEAVES, 1, 0);
    turn(w, 20);
    assert_int_equal(count(&w->workers[0], WF_WEIGHTS), 1);
    push_from(&w->workers[0], 4, version_of(&w->workers[0], 0));
    for (uint32_t step = 5; step <= 20; step++)
        assert_true(make_step(w, &w->workers[0], step, step));
    assert_int_equal(join(w, &w->workers[1], 1), 20);
    assert_true(make_step(w, &w->workers[0], 21, 21));
    assert_true(make_step(w, &w->workers[0], 22, 22));
    assert_false(make_step(w, &w->workers[0], 23, 23));
    assert_true(make_step(w, &w->workers[1], 1, 20));
    assert_int_equal(count(&w->workers[0], WF_WEIGHTS), 1);
}

static void nobody_waits_for_one_whom_a_view_removes(void **state)
{
    world *w = *state;

    run_ahead(w);
    say_view(w, VIEW + 1, (uint64_t[]){11}, 1);
    assert_int_equal(count(&w->workers[0], WF_WEIGHTS), 1);
}

static void a_job_without_clocks_has_no_use_for_them(void **state)
{
    world *w = *state;
    player *p = begin_with_worker(w);

    list_one_slice(p);
    assert_int_equal(join(w, p, 1), 0);
    assert_false(make_step(w, p, 1, 1));
    assert_true(make_step(w, p, 1, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_updates_between_pull_and_push_are_counted, begin, end),
        cmocka_unit_test_setup_teardown(a_stale_gradient_has_a_smaller_learning_rate, begin, end),
        cmocka_unit_test_setup_teardown(a_version_that_never_was_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(a_worker_that_is_ahead_waits_and_the_ps_says_for_whom,
                                        begin, end),
        cmocka_unit_test_setup_teardown(
            nobody_waits_for_one_who_leaves_and_one_who_joins_begins_with_the_last, begin, end),
        cmocka_unit_test_setup_teardown(nobody_waits_for_one_whom_a_view_removes, begin, end),
        cmocka_unit_test_setup_teardown(a_job_without_clocks_has_no_use_for_them, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
