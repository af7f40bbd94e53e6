/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/shuffle.c - an epoch's order is a permutation, and a different one each epoch. */
#include "common/data/shuffle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void every_record_comes_exactly_once(void **unused)
{
    static const uint64_t sizes[] = {1, 2, 3, 4, 5, 7, 16, 17, 63, 64, 65, 1000, 4096, 4097, 60000};
    static uint8_t seen[60000];

    (void)unused;
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            wf_shuffle s = wf_shuffle_of(k, epoch, sizes[k], true);

            memset(seen, 0, sizeof seen);
            for (uint64_t i = 0; i < sizes[k]; i++) {
                uint64_t r = wf_shuffle_record(&s, i);

                assert_true(r < sizes[k]);
                assert_int_equal(seen[r], 0);
                seen[r] = 1;
                if (k < 8)
                    assert_int_equal(r, wf_shuffle_at(k, epoch, sizes[k], i));
            }
        }
}

static void off_is_the_order_of_the_file(void **unused)
{
    wf_shuffle s = wf_shuffle_of(1, 2, 1000, false);

    (void)unused;
    for (uint64_t i = 0; i < 1000; i++)
        assert_int_equal(wf_shuffle_record(&s, i), i);
}

/* Two random orders of n agree in one place on average; 12 in 60,000 has a chance of 1e-9. */
static void seeds_and_epochs_give_unlike_orders(void **unused)
{
    enum { RECORDS = 60000 };
    wf_shuffle s[4] = {
        wf_shuffle_of(1, 0, RECORDS, true),
        wf_shuffle_of(1, 1, RECORDS, true),
        wf_shuffle_of(2, 0, RECORDS, true),
        wf_shuffle_of(1, 0, RECORDS, false),
    };

    (void)unused;
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < a; b++) {
            int same = 0;

            for (uint64_t i = 0; i < RECORDS; i++)
                same += wf_shuffle_record(&s[a], i) == wf_shuffle_record(&s[b], i);
            assert_in_range(same, 0, 12);
        }
}

/* A part of an epoch must be a fair sample: here of which tenth of the file a record is from. Chi
 * squared with 9 degrees of freedom passes 39 once in 100,000. */
static void the_first_records_come_from_all_over_the_file(void **unused)
{
    (void)unused;
    for (uint64_t epoch = 0; epoch < 20; epoch++) {
        wf_shuffle s = wf_shuffle_of(9, epoch, 60000, true);
        double counts[10] = {0}, chi = 0;

        for (uint64_t i = 0; i < 3000; i++)
            counts[wf_shuffle_record(&s, i) / 6000]++;
        for (int t = 0; t < 10; t++)
            chi += (counts[t] - 300) * (counts[t] - 300) / 300;
        assert_true(chi < 39);
    }
}

/* Neighbours in the file must not stay neighbours: a chain of steps of equal sign or size would
 * show as far more or fewer rises than half. */
static void order_has_no_runs(void **unused)
{
    wf_shuffle s = wf_shuffle_of(5, 5, 60000, true);
    int rises = 0, near = 0;

    (void)unused;
    for (uint64_t i = 1; i < 60000; i++) {
        int64_t step = (int64_t)wf_shuffle_record(&s, i) - (int64_t)wf_shuffle_record(&s, i - 1);

        rises += step > 0;
        near += step > -10 && step < 10;
    }
    assert_in_range(rises, 29500, 30500);
    assert_in_range(near, 0, 50); /* 18 expected */
}

/* The order is part of what a checkpoint means: it may not change by accident. */
static void the_order_is_what_it_was(void **unused)
{
    static const uint64_t first[] = {19834, 53047, 35140, 17699};

    (void)unused;
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(wf_shuffle_at(1, 0, 60000, i), first[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_record_comes_exactly_once),
        cmocka_unit_test(off_is_the_order_of_the_file),
        cmocka_unit_test(seeds_and_epochs_give_unlike_orders),
        cmocka_unit_test(the_first_records_come_from_all_over_the_file),
        cmocka_unit_test(order_has_no_runs),
        cmocka_unit_test(the_order_is_what_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
