/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exchange_ring.c - workers that add up their gradients: means are weighted by records,
 * whoever is idle or drops its step; all workers have the same bits, also when one is lost in a
 * step, or joins. */
#include "tests/unit/ring_world.h"

static wf_peer fake_peer(uint32_t index)
{
    return (wf_peer){.task = {WF_ROLE_WORKER, 10 + index},
                     .incarnation = 100 + index,
                     .up = true,
                     .address = ""};
}

static void means_are_weighted_by_records_and_equal_in_all_workers(void **state)
{
    static const int plan[][WORKERS] = {{8, 8, 8},  {8, 4, 1},   {5, -1, 3}, {-1, -1, 7},
                                        {6, 0, 2},  {-1, 3, -1}, {0, 0, 0},  {0, -1, -1},
                                        {1, 9, 32}, {2, -1, 2}};

    (void)state;
    turn(WORKERS);
    for (size_t s = 0; s < WF_COUNT(plan); s++) {
        make_steps(plan[s], WORKERS);
        turn(WORKERS);
        want_step(plan[s]);
        check_weights();
        for (uint32_t k = 0; k < WORKERS; k++)
            assert_int_equal(wf_exchange_in_flight(w.workers[k].exchange), 0);
    }
}

/* While one has not taken its messages no other counts the step as done. */
static void a_step_is_acknowledged_once_all_have_applied_it(void **state)
{
    static const int all[WORKERS] = {3, 4, 5};
    wf_waiting late = {.what = ""};

    (void)state;
    turn(WORKERS);
    make_steps(all, WORKERS);
    turn(2);
    assert_int_equal(wf_exchange_in_flight(w.workers[0].exchange), 1);
    wf_exchange_name_late(w.workers[0].exchange, WF_EXCHANGE_ACKS, 1, &late);
    assert_int_equal(late.whom.role, WF_ROLE_WORKER);
    turn(WORKERS);
    assert_int_equal(wf_exchange_in_flight(w.workers[0].exchange), 0);
    want_step(all);
    check_weights();
}

/* It is applied, and the next one may begin: what was sent lies in other memory. */
static void a_step_that_another_may_not_have_applied_is_not_acknowledged(void **state)
{
    static const int all[WORKERS] = {3, 4, 5};

    (void)state;
    turn(WORKERS);
    w.done_is_lost = true;
    make_steps(all, WORKERS);
    turn(WORKERS);
    want_step(all);
    check_weights();
    for (uint32_t k = 0; k < WORKERS; k++) {
        assert_int_equal(wf_exchange_in_flight(w.workers[k].exchange), 1);
        make_step(k, (uint32_t)all[k]);
    }
    turn(WORKERS);
    want_step(all);
    check_weights();
    for (uint32_t k = 0; k < WORKERS; k++)
        assert_int_equal(wf_exchange_in_flight(w.workers[k].exchange), 2);
}

/* Two have given their parts, and the third is lost before it gives its own, or has heard theirs:
 * the two make the step without it. */
static void who_is_left_makes_the_step_alone(void **state)
{
    static const int all[WORKERS] = {3, 4, 5}, both[WORKERS] = {3, 4, -1};

    (void)state;
    turn(WORKERS);
    make_steps(all, WORKERS);
    turn(WORKERS);
    want_step(all);
    make_steps(all, 2);
    turn(2);
    tell_one(0, 2, 3);
    turn(2); /* the other has not heard of the view */
    assert_int_equal(wf_exchange_in_flight(w.workers[0].exchange), 1);
    tell_one(1, 2, 3);
    turn(2);
    want_step(both);
    assert_int_equal(wf_exchange_in_flight(w.workers[0].exchange), 0);
    assert_int_equal(wf_exchange_in_flight(w.workers[1].exchange), 0);
    open_again(2);
    tell(3, 7);
    turn(WORKERS);
    check_weights(); /* it has joined, and has what the others have */
    make_steps(all, WORKERS);
    turn(WORKERS);
    want_step(all);
    check_weights();
}

/* Two have applied a step, and one of them is lost; the other gives the values to one that has not
 * applied it. Its part is in them. */
static void who_is_a_step_behind_gets_the_values(void **state)
{
    static const int all[WORKERS] = {3, 4, 5};

    (void)state;
    turn(WORKERS);
    make_step_of_first(all);
    w.values_are_lost = true;
    tell(2, 3);
    turn(2);
    assert_int_equal(wf_exchange_in_flight(w.workers[0].exchange), 1);
    assert_int_equal(wf_exchange_in_flight(w.workers[1].exchange), 1);
    w.values_are_lost = false;
    wf_exchange_on_down(w.workers[0].exchange, w.workers[0].peers[1]);
    assert_int_equal(wf_exchange_on_up(w.workers[0].exchange, w.workers[0].peers[1], NULL), WF_OK);
    turn(2);
    assert_int_equal(wf_exchange_in_flight(w.workers[0].exchange), 0);
    assert_int_equal(wf_exchange_in_flight(w.workers[1].exchange), 0);
    open_again(2);
    tell(3, 7);
    turn(WORKERS);
    check_weights();
}

static wf_status hear(uint16_t kind, uint32_t step, uint32_t request, uint32_t control)
{
    worker *it = &w.workers[0];
    wf_peer from = fake_peer(1);
    wf_msg *m = NULL;
    wf_status rc;

    assert_int_equal(wf_net_msg(it->net, kind, &m, NULL), WF_OK);
    m->head.view = 1;
    m->head.step = step;
    m->head.request = request;
    if (kind == WF_RING_SUMS)
        assert_int_equal(wf_parts_put(m, NULL, 0, NULL), WF_OK);
    else if (control)
        memset(wf_msg_control(m, control), 0, control);
    rc = wf_exchange_on_message(it->exchange, &from, m, 0, NULL);
    wf_net_free_msg(it->net, &m);
    return rc;
}

static void nobody_is_left_who_has_the_variables(void **state)
{
    wf_err err;

    (void)state;
    turn(WORKERS);
    open_again(2);
    w.view.n_members = 1;
    w.member_list[0] = &w.members[2];
    assert_int_equal(wf_exchange_on_view(w.workers[2].exchange, &w.view, 2, &err), WF_AGAIN);
    assert_non_null(strstr(err.what, "no worker is left that has the variables"));
}

static void what_no_worker_may_say_is_refused(void **state)
{
    (void)state;
    turn(WORKERS);
    assert_int_equal(hear(WF_RING_SUMS, 3, 0, 0), WF_PROTO); /* two steps ahead at most */
    assert_int_equal(hear(WF_RING_SUMS, 0, 0, 0), WF_PROTO);
    assert_int_equal(hear(WF_RING_SUMS, 1, 99, 0), WF_PROTO); /* no such bucket */
    assert_int_equal(hear(WF_RING_SUMS, 1, 0, 0), WF_PROTO);  /* an empty range of a full one */
    assert_int_equal(hear(WF_RING_GIVEN, 1, 5, 2), WF_PROTO); /* bits of other variables */
    assert_int_equal(hear(WF_RING_GIVEN, 1, 5, 1), WF_OK);
    assert_int_equal(hear(WF_RING_GIVEN, 1, 5, 1), WF_PROTO);
    assert_int_equal(hear(WF_RING_DONE, 2, 0, 0), WF_PROTO);
    assert_int_equal(hear(WF_RING_VALUES, 0, 0, 0), WF_PROTO); /* nobody lacks any */
    assert_int_equal(hear(WF_PUSH, 1, 0, 0), WF_OK); /* not of this exchange: passed over */
}

/* Whatever messages are lost with it, at any time of a step. */
static void a_step_begins_anew_when_a_link_was_lost(void **state)
{
    static const int all[WORKERS] = {3, 4, 5};
    wf_peer stranger = fake_peer(1);

    (void)state;
    turn(WORKERS);
    stranger.incarnation = 7;
    assert_int_equal(wf_exchange_on_up(w.workers[0].exchange, &stranger, NULL), WF_OK);
    for (uint32_t round = 0; round < 8; round++) {
        make_steps(all, WORKERS);
        for (uint32_t i = 0; i < round; i++) {
            run_worker(&w.workers[i % WORKERS]);
            w.now_ns += MS;
        }
        wf_exchange_on_down(w.workers[0].exchange, w.workers[0].peers[1 + round % 2]);
        for (uint32_t i = 0; i < WORKERS; i++)
            run_worker(&w.workers[(i + round) % WORKERS]);
        assert_int_equal(
            wf_exchange_on_up(w.workers[0].exchange, w.workers[0].peers[1 + round % 2], NULL),
            WF_OK);
        turn(WORKERS);
        want_step(all);
        check_weights();
        for (uint32_t k = 0; k < WORKERS; k++)
            assert_int_equal(wf_exchange_in_flight(w.workers[k].exchange), 0);
    }
}

static wf_reduce_way way_of(uint32_t who)
{
    return ((const wf_ring *)w.workers[who].exchange)->way;
}

/* Addresses decide, not links: all who have the same view choose the same way. */
static void workers_of_one_host_add_up_directly(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < WORKERS; i++)
        assert_int_equal(way_of(i), WF_REDUCE_DIRECT);
    snprintf(w.addresses[1], sizeof w.addresses[1], "tcp://elsewhere:1");
    tell(2, 7);
    for (uint32_t i = 0; i < WORKERS; i++)
        assert_int_equal(way_of(i), WF_REDUCE_BY_SIZE);
    tell(3, 5); /* a pair does not ask where they are */
    assert_int_equal(way_of(0), WF_REDUCE_PAIR);
    snprintf(w.addresses[1], sizeof w.addresses[1], "ipc:///tmp/worker-1");
    snprintf(w.addresses[0], sizeof w.addresses[0], "ipc:///tmp/worker-0");
    snprintf(w.addresses[2], sizeof w.addresses[2], "ipc:///tmp/worker-2");
    tell(4, 7);
    assert_int_equal(way_of(1), WF_REDUCE_DIRECT);
}

static void nothing_begins_before_all_are_linked(void **state)
{
    (void)state;
    assert_int_equal(wf_exchange_want(w.workers[0].exchange, 1, 1, NULL), WF_OK);
    assert_false(wf_exchange_ready(w.workers[0].exchange, 1));
    turn(2);
    assert_false(wf_exchange_ready(w.workers[0].exchange, 1));
    turn(WORKERS);
    assert_true(wf_exchange_ready(w.workers[0].exchange, 1));
}

#define BEGUN(name, how) cmocka_unit_test_setup_teardown(name, how, end)
#define RING(name) BEGUN(name, begin), BEGUN(name, begin_apart)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RING(means_are_weighted_by_records_and_equal_in_all_workers),
        BEGUN(means_are_weighted_by_records_and_equal_in_all_workers, begin_divided),
        BEGUN(means_are_weighted_by_records_and_equal_in_all_workers, begin_divided_apart),
        RING(a_step_is_acknowledged_once_all_have_applied_it),
        RING(a_step_that_another_may_not_have_applied_is_not_acknowledged),
        RING(who_is_left_makes_the_step_alone),
        RING(who_is_a_step_behind_gets_the_values),
        RING(nobody_is_left_who_has_the_variables),
        RING(what_no_worker_may_say_is_refused),
        RING(a_step_begins_anew_when_a_link_was_lost),
        BEGUN(workers_of_one_host_add_up_directly, begin),
        RING(nothing_begins_before_all_are_linked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
