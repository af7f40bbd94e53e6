/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/decisions.c - what is known of steps that workers make together, in any order. */
#include "common/wire/decisions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static bool add(wf_decisions *d, uint32_t clock, uint32_t before, uint64_t worker)
{
    bool added = false;

    assert_int_equal(wf_decisions_add(d, &(wf_decision){clock, before, 1, &worker}, &added, NULL),
                     WF_OK);
    return added;
}

static void the_first_word_on_a_clock_counts(void **unused)
{
    wf_decisions d = {0};

    (void)unused;
    assert_true(add(&d, 3, 1, 7));
    assert_false(add(&d, 3, 1, 8));
    assert_true(add(&d, 1, 0, 9));
    assert_false(add(&d, 1, 0, 8));
    assert_int_equal(d.n, 2);
    assert_int_equal(wf_decisions_last(&d), 3);
    assert_int_equal(wf_decisions_after(&d, 0)->workers[0], 9);
    assert_int_equal(wf_decisions_after(&d, 1)->workers[0], 7);
    assert_null(wf_decisions_after(&d, 3));
    wf_decisions_close(&d);
}

static void what_follows_a_clock_is_known_with_the_one_between(void **unused)
{
    wf_decisions d = {0};

    (void)unused;
    assert_true(add(&d, 6, 4, 1));
    assert_null(wf_decisions_next(&d, 2));
    assert_null(wf_decisions_next(&d, 3));
    assert_true(add(&d, 4, 2, 1));
    assert_int_equal(wf_decisions_next(&d, 2)->clock, 4);
    assert_int_equal(wf_decisions_next(&d, 4)->clock, 6);
    assert_int_equal(wf_decisions_next(&d, 5)->clock, 6); /* nobody was asked about clock 5 */
    assert_null(wf_decisions_next(&d, 6));
    wf_decisions_close(&d);
}

static void the_oldest_make_room(void **unused)
{
    wf_decisions d = {0};

    (void)unused;
    for (uint32_t i = 1; i <= WF_DECISIONS; i++)
        assert_true(add(&d, 2 * i, 2 * i - 2, i));
    assert_false(add(&d, 1, 0, 1));
    assert_true(add(&d, 5, 4, 1));
    assert_int_equal(d.n, WF_DECISIONS);
    assert_int_equal(d.rows[0].clock, 4);
    assert_int_equal(d.rows[1].clock, 5);
    assert_int_equal(d.rows[2].clock, 6);
    assert_int_equal(wf_decisions_last(&d), 2 * WF_DECISIONS);
    wf_decisions_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_word_on_a_clock_counts),
        cmocka_unit_test(what_follows_a_clock_is_known_with_the_one_between),
        cmocka_unit_test(the_oldest_make_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
