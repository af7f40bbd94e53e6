/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exchange_ps.c - what a worker's exchange sends to a ps that does not let it in, and
 * how it comes to frozen weights. The ps is played by hand, over a transport in memory. */
#include "tests/unit/exchange_stage.h"

static void a_ps_that_denies_costs_a_small_message_now_and_then(void **state)
{
    world *w = *state;

    w->denies = true;
    turn(w, 100);
    push(w, 1);
    turn(w, 10000);
    assert_int_equal(w->got[WF_PUSH], 0); /* nothing but the list, before the list is registered */
    assert_in_range(w->got[WF_LIST], 8, 20);
    w->denies = false;
    turn(w, 1500);
    assert_int_equal(w->got[WF_PUSH], 1);
}

static void after_a_denial_all_is_sent_again_once_the_list_is_registered(void **state)
{
    world *w = *state;

    turn(w, 100);
    assert_int_equal(w->got[WF_LIST], 1);
    w->denies = true; /* its view has not this worker any more, for a while */
    push(w, 1);
    push(w, 2);
    assert_int_equal(wf_exchange_want(w->exchange, 1, 3, NULL), WF_OK);
    turn(w, 3000);
    assert_int_equal(w->got[WF_PUSH], 2);
    w->denies = false;
    turn(w, 1500);
    assert_int_equal(w->got[WF_PUSH], 4);
    assert_int_equal(w->got[WF_PULL], 2);
}

static void frozen_weights_are_pulled_once_and_before_the_first_step(void **state)
{
    world *w = *state;
    wf_waiting late = {0};

    turn(w, 100);
    assert_int_equal(w->n_listed[MOVING_LIST], 1);
    assert_int_equal(w->n_listed[FROZEN_LIST], 2);
    assert_int_equal(w->n_pulls[FROZEN_LIST], 1); /* nobody has asked for a step yet */
    assert_int_equal(wf_exchange_want(w->exchange, 1, 1, NULL), WF_OK);
    turn(w, 20);
    give(w, MOVING_LIST, 0, ELEMENTS, 0);
    turn(w, 20);
    assert_false(wf_exchange_ready(w->exchange, 1)); /* K4 */
    wf_exchange_name_late(w->exchange, WF_EXCHANGE_FROZEN, 0, &late);
    assert_int_equal(late.whom.role, WF_ROLE_PS);
    assert_int_equal(late.whom.index, 0);
    give(w, FROZEN_LIST, 1, 10, 3);
    give(w, FROZEN_LIST, 2, FROZEN - 10, 4);
    turn(w, 20);
    assert_true(wf_exchange_ready(w->exchange, 1));
    for (int set = 0; set < WF_WEIGHT_SETS; set++)
        for (uint32_t i = 0; i < FROZEN; i++)
            assert_true(wf_exchange_weights(w->exchange, set, 1)[i] == (i < 10 ? 3 : 4));
    assert_int_equal(wf_exchange_want(w->exchange, 0, 2, NULL), WF_OK);
    turn(w, 100);
    assert_int_equal(w->n_pulls[MOVING_LIST], 2);
    assert_int_equal(w->n_pulls[FROZEN_LIST], 1);
}

static void a_fresh_link_asks_for_the_frozen_slices_that_have_not_come(void **state)
{
    world *w = *state;

    turn(w, 100);
    give(w, FROZEN_LIST, 1, 10, 3);
    turn(w, 20);
    assert_int_equal(wf_exchange_frozen_left(w->exchange), 1);
    assert_int_equal(wf_exchange_on_up(w->exchange, w->to_ps, NULL), WF_OK);
    turn(w, 100);
    assert_int_equal(w->n_pulls[FROZEN_LIST], 2);
    assert_int_equal(w->n_listed[FROZEN_LIST], 1);
    assert_int_equal(w->listed[FROZEN_LIST][0], 2);
    give(w, FROZEN_LIST, 2, FROZEN - 10, 4);
    turn(w, 20);
    assert_int_equal(wf_exchange_frozen_left(w->exchange), 0);
    assert_int_equal(wf_exchange_on_up(w->exchange, w->to_ps, NULL), WF_OK);
    turn(w, 100);
    assert_int_equal(w->n_pulls[FROZEN_LIST], 2); /* all are here */
}

static void a_part_without_a_codec_is_no_weights(void **state)
{
    world *w = *state;

    turn(w, 100);
    w->says = WF_PROTO;
    give_nothing(w, FROZEN_LIST, 3);
    turn(w, 20);
    assert_int_equal(wf_exchange_frozen_left(w->exchange), 3);
}

/* ---- slices that move ---- */

static uint32_t late_with_acks(const world *w, uint32_t step)
{
    wf_waiting late = {0};

    wf_exchange_name_late(w->exchange, WF_EXCHANGE_ACKS, step, &late);
    assert_int_equal(late.whom.role, WF_ROLE_PS);
    return late.whom.index;
}

/* The ps that the worker believes to have slice 0. */
static uint32_t place_of_slice(const world *w)
{
    return ((const wf_client *)w->exchange)->slices[0].ps;
}

/* What was denied was sent by the map `of`; slice 0 has moved to a ps at the version `map`. */
static void deny(world *w, uint32_t map, uint32_t of, uint32_t ps)
{
    Weft__Denied body = WEFT__DENIED__INIT;
    Weft__MapChange change = WEFT__MAP_CHANGE__INIT, *moved[] = {&change};
    wf_msg *m = NULL;

    change.ps = ps;
    change.version = map;
    body.map = of;
    body.moved = moved;
    body.n_moved = 1;
    assert_int_equal(wf_net_msg(w->ps, WF_DENIED, &m, NULL), WF_OK);
    assert_int_equal(wf_control_put(m, &body.base, NULL), WF_OK);
    m->head.generation = GENERATION;
    m->head.request = GENERATION;
    m->head.map = map;
    assert_int_equal(wf_net_send(w->ps, w->to_worker, WF_LANE_CONTROL, 0, &m, NULL), WF_OK);
}

static void a_newer_map_is_taken_over_at_once_and_all_is_sent_again_by_it(void **state)
{
    world *w = *state;

    turn(w, 100);
    push(w, 1);
    turn(w, 20);
    assert_int_equal(w->got[WF_PUSH], 1);
    assert_int_equal(w->map, GENERATION);
    deny(w, 9, 0, 0);
    turn(w, 20); /* sooner than a denial is answered */
    assert_int_equal(w->got[WF_LIST], 2);
    assert_int_equal(w->got[WF_PUSH], 2);
    assert_int_equal(w->map, 9);
    deny(w, 9, GENERATION, 0); /* of the push, which has been sent again since */
    turn(w, 200);
    assert_int_equal(w->got[WF_LIST], 2);
    deny(w, 9, 9, 0); /* of something that was sent by the newest map */
    turn(w, 200);
    assert_int_equal(w->got[WF_LIST], 3);
    send_push_ok(w, 1);
    assert_int_equal(wf_exchange_in_flight(w->exchange), 0);
}

/* Its acknowledgements: what it has applied has gone with the slice, and perhaps more has not. Its
 * answer to a pull left before the slice did. */
static void what_the_old_ps_acknowledges_of_a_moved_slice_counts_for_nothing(void **state)
{
    world *w = *state;

    turn(w, 100);
    push(w, 1);
    assert_int_equal(wf_exchange_want(w->exchange, 1, 2, NULL), WF_OK);
    turn(w, 20);
    assert_int_equal(late_with_acks(w, 1), 0);
    deny(w, 9, 0, 1);
    turn(w, 20);
    assert_int_equal(place_of_slice(w), 1);
    assert_int_equal(w->n_listed[MOVING_LIST], 0);
    assert_int_equal(w->got[WF_PUSH], 1); /* it belongs to the other, which is away */
    send_push_ok(w, 1);
    turn(w, 20);
    assert_int_equal(wf_exchange_in_flight(w->exchange), 1);
    assert_int_equal(late_with_acks(w, 1), 1);
    assert_false(wf_exchange_ready(w->exchange, 1));
    give(w, MOVING_LIST, 0, ELEMENTS, 5);
    turn(w, 20);
    assert_true(wf_exchange_ready(w->exchange, 1));
    give(w, MOVING_LIST, 0, ELEMENTS, 6); /* a later answer holds what the step must not see */
    turn(w, 20);
    assert_true(wf_exchange_weights(w->exchange, 1, 0)[0] == 5);
    deny(w, 8, 0, 0); /* of an older place */
    turn(w, 20);
    assert_int_equal(place_of_slice(w), 1);
    deny(w, 10, 0, 0); /* it comes back */
    turn(w, 20);
    assert_int_equal(w->got[WF_PUSH], 2);
    send_push_ok(w, 1);
    assert_int_equal(wf_exchange_in_flight(w->exchange), 0);
}

/* Whoever has heard of a move from the taker has asked the giver anew, whose lists end once more.
 */
static void the_word_that_lists_have_ended_is_answered_at_once(void **state)
{
    world *w = *state;

    turn(w, 100);
    deny(w, 9, 0, 0);
    turn(w, 20);
    assert_int_equal(w->got[WF_LIST], 2);
    deny(w, 9, 0, 0); /* with nothing that is news */
    turn(w, 20);
    assert_int_equal(w->got[WF_LIST], 3);
}

static void a_slice_does_not_move_to_a_ps_that_is_not_known(void **state)
{
    world *w = *state;

    turn(w, 100);
    w->says = WF_PROTO;
    deny(w, 9, 0, 2);
    turn(w, 20);
    assert_int_equal(place_of_slice(w), 0);
}

/* A denial counts as a whole: a row that cannot be undoes the one before it. */
static void a_denial_with_a_bad_row_moves_nothing(void **state)
{
    world *w = *state;
    Weft__Denied body = WEFT__DENIED__INIT;
    Weft__MapChange rows[2] = {WEFT__MAP_CHANGE__INIT, WEFT__MAP_CHANGE__INIT};
    Weft__MapChange *moved[] = {&rows[0], &rows[1]};
    wf_msg *m = NULL;

    turn(w, 100);
    rows[0].ps = 1;
    rows[0].version = rows[1].version = 9;
    rows[1].slice = 99;
    body.moved = moved;
    body.n_moved = 2;
    assert_int_equal(wf_net_msg(w->worker, WF_DENIED, &m, NULL), WF_OK);
    assert_int_equal(wf_control_put(m, &body.base, NULL), WF_OK);
    m->head.generation = GENERATION;
    m->head.request = GENERATION;
    m->head.map = 9;
    assert_int_equal(wf_exchange_on_message(w->exchange, w->to_ps, m, w->now_ns, NULL), WF_PROTO);
    wf_net_free_msg(w->worker, &m);
    assert_int_equal(place_of_slice(w), 0);
}

static int begin_back(void **state)
{
    return begin_with(state, 2, 3, 1);
}

/* Slice 0 was on ps 1 at the set-up, went to ps 0 and came back before this worker began. */
static void a_list_denied_after_another_ps_told_the_moves_is_sent_again(void **state)
{
    world *w = *state;
    Weft__Denied body = WEFT__DENIED__INIT;
    Weft__MapChange change = WEFT__MAP_CHANGE__INIT, *moved[] = {&change};
    wf_msg *m = NULL;

    w->silent = true;
    turn(w, 100);
    assert_int_equal(w->got[WF_LIST], 2);
    change.ps = 1;
    change.version = 11;
    body.map = GENERATION;
    body.moved = moved;
    body.n_moved = 1;
    assert_int_equal(wf_net_msg(w->worker, WF_DENIED, &m, NULL), WF_OK);
    assert_int_equal(wf_control_put(m, &body.base, NULL), WF_OK);
    m->head.generation = GENERATION;
    m->head.request = GENERATION;
    m->head.map = 11;
    assert_int_equal(wf_exchange_on_message(w->exchange, w->to_other, m, w->now_ns, NULL), WF_OK);
    wf_net_free_msg(w->worker, &m);
    deny(w, 11, GENERATION, 1); /* ps 0's answer to the two lists */
    deny(w, 11, GENERATION, 1);
    w->silent = false;
    turn(w, 20000);
    assert_in_range(w->got[WF_LIST], 3, 100);
}

static uint8_t own[ELEMENTS * sizeof(float)] __attribute__((aligned(64)));

static void keep(void *data, void *hint)
{
    (void)data, (void)hint;
}

static bool for_several;

static wf_buf *own_buf(wf_transport *t, const wf_route *to, size_t bytes, bool several)
{
    (void)t, (void)to;
    for_several = several;
    return wf_buf_wrap(own, bytes, keep, NULL);
}

static void use_own_buf(const world *w)
{
    static wf_transport_ops ops;
    size_t n;

    ops = *wf_net_transports(w->worker, &n)[0]->ops; /* to the ps that has the variable */
    ops.buf = own_buf;
    wf_net_transports(w->worker, &n)[0]->ops = &ops;
}

static void a_gradient_is_born_in_memory_of_the_transport_to_its_ps(void **state)
{
    world *w = *state;

    use_own_buf(w);
    assert_ptr_equal(wf_exchange_gradient(w->exchange, 1, 0), own);
    assert_false(for_several);
}

static void what_goes_to_two_ps_is_born_in_memory_for_several(void **state)
{
    world *w = *state;
    wf_client *c = (wf_client *)w->exchange;
    wf_buf *b;

    use_own_buf(w);
    assert_int_equal(c->first_slice[2] - c->first_slice[1], 2);
    c->slices[c->first_slice[1] + 1].ps = 1;
    b = wf_pushes_new_buf(c, 1, sizeof own);
    assert_ptr_equal(b->data, own);
    assert_true(for_several);
    wf_buf_unref(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_gradient_is_born_in_memory_of_the_transport_to_its_ps,
                                        begin, end),
        cmocka_unit_test_setup_teardown(what_goes_to_two_ps_is_born_in_memory_for_several,
                                        begin_frozen, end),
        cmocka_unit_test_setup_teardown(a_ps_that_denies_costs_a_small_message_now_and_then, begin,
                                        end),
        cmocka_unit_test_setup_teardown(
            after_a_denial_all_is_sent_again_once_the_list_is_registered, begin, end),
        cmocka_unit_test_setup_teardown(frozen_weights_are_pulled_once_and_before_the_first_step,
                                        begin_frozen, end),
        cmocka_unit_test_setup_teardown(a_fresh_link_asks_for_the_frozen_slices_that_have_not_come,
                                        begin_frozen, end),
        cmocka_unit_test_setup_teardown(
            a_newer_map_is_taken_over_at_once_and_all_is_sent_again_by_it, begin, end),
        cmocka_unit_test_setup_teardown(
            what_the_old_ps_acknowledges_of_a_moved_slice_counts_for_nothing, begin, end),
        cmocka_unit_test_setup_teardown(the_word_that_lists_have_ended_is_answered_at_once, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_slice_does_not_move_to_a_ps_that_is_not_known, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_denial_with_a_bad_row_moves_nothing, begin, end),
        cmocka_unit_test_setup_teardown(a_part_without_a_codec_is_no_weights, begin_empty, end),
        cmocka_unit_test_setup_teardown(a_list_denied_after_another_ps_told_the_moves_is_sent_again,
                                        begin_back, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
