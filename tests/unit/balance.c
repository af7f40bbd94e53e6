/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/balance.c - which slice the balance would move, and where to. */
#include "master/placement/balance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static wf_balance_slice slice(uint32_t number, double load)
{
    return (wf_balance_slice){.slice = number, .held_bytes = 100, .load = load};
}

static wf_balance_ps ps(double load, const wf_balance_slice *slices, uint32_t n)
{
    return (wf_balance_ps){
        .known = true, .load = load, .held_bytes = 1000, .slices = slices, .n = n};
}

static void what_levels_most_moves_from_the_hottest_to_the_coolest(void **state)
{
    const wf_balance_slice of_0[] = {slice(1, 90), slice(2, 40), slice(3, 20)};
    const wf_balance_ps all[] = {ps(150, of_0, 3), ps(100, NULL, 0), ps(50, NULL, 0)};
    wf_balance_move m;
    uint32_t hottest;

    (void)state;
    assert_true(wf_balance_tilt(all, 3, &hottest) == 1.5);
    assert_int_equal(hottest, 0);
    assert_true(wf_balance_choose(all, 3, &m));
    assert_int_equal(m.from, 0);
    assert_int_equal(m.to, 2);
    assert_int_equal(m.slice.slice, 2); /* 110 and 90; the first would make it 60 and 140 */
}

static void of_equal_moves_the_smaller_slice_is_made_and_then_the_first(void **state)
{
    wf_balance_slice of_1[] = {slice(7, 30), slice(5, 30), slice(6, 30)};
    const wf_balance_ps all[] = {ps(40, NULL, 0), ps(100, of_1, 3), ps(100, NULL, 0),
                                 ps(40, NULL, 0)};
    wf_balance_move m;

    (void)state;
    assert_true(wf_balance_choose(all, 4, &m));
    assert_int_equal(m.from, 1); /* of the two hottest the first, and so of the coolest */
    assert_int_equal(m.to, 0);
    assert_int_equal(m.slice.slice, 5);
    of_1[2].held_bytes = 50;
    assert_true(wf_balance_choose(all, 4, &m));
    assert_int_equal(m.slice.slice, 6);
}

static void what_would_not_help_does_not_move(void **state)
{
    const wf_balance_slice one[] = {slice(1, 140)}, tiny[] = {slice(1, 1)};
    const wf_balance_ps alone[] = {ps(150, one, 1), ps(10, NULL, 0)};
    const wf_balance_ps little[] = {ps(150, tiny, 1), ps(10, NULL, 0)};
    const wf_balance_ps idle[] = {ps(0, one, 1), ps(0, NULL, 0)};
    const wf_balance_ps level[] = {ps(50, one, 1), ps(50, NULL, 0)};
    wf_balance_move m;
    uint32_t hottest;

    (void)state;
    assert_false(wf_balance_choose(alone, 2, &m)); /* the scale would turn round */
    assert_false(wf_balance_choose(little, 2, &m));
    assert_false(wf_balance_choose(idle, 2, &m));
    assert_true(wf_balance_tilt(idle, 2, &hottest) == 0);
    assert_false(wf_balance_choose(level, 2, &m));
    assert_false(wf_balance_choose(level, 1, &m));
    assert_false(wf_balance_choose(NULL, 0, &m));
}

static void what_stays_and_what_has_no_room_does_not_move(void **state)
{
    wf_balance_slice of_0[] = {slice(1, 40), slice(2, 30)};
    wf_balance_ps all[] = {ps(150, of_0, 2), ps(50, NULL, 0)};
    wf_balance_move m;

    (void)state;
    of_0[0].stays = true;
    assert_true(wf_balance_choose(all, 2, &m));
    assert_int_equal(m.slice.slice, 2);
    of_0[1].held_bytes = 900; /* 1,900 bytes on the taker; 1,500 are one and a half of the mean */
    assert_false(wf_balance_choose(all, 2, &m));
    all[0].held_bytes = 1900;
    assert_true(wf_balance_choose(all, 2, &m));
}

static void nothing_moves_until_all_have_told(void **state)
{
    const wf_balance_slice of_0[] = {slice(1, 40)};
    wf_balance_ps all[] = {ps(150, of_0, 1), ps(50, NULL, 0)};
    wf_balance_move m;
    uint32_t hottest;

    (void)state;
    all[1].known = false;
    assert_true(wf_balance_tilt(all, 2, &hottest) == 0);
    assert_false(wf_balance_choose(all, 2, &m));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_levels_most_moves_from_the_hottest_to_the_coolest),
        cmocka_unit_test(of_equal_moves_the_smaller_slice_is_made_and_then_the_first),
        cmocka_unit_test(what_would_not_help_does_not_move),
        cmocka_unit_test(what_stays_and_what_has_no_room_does_not_move),
        cmocka_unit_test(nothing_moves_until_all_have_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
