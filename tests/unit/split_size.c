/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/split_size.c - the size of splits against workers that are played. */
#include "master/epoch/split_size.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { WORKERS_MOST = 9, BATCHES_MOST = 3000 };

static const wf_split_job plain;

/* Each of the workers takes a split as soon as it is free. */
static uint64_t play(uint64_t batches, uint32_t workers, uint64_t each)
{
    uint64_t made[WORKERS_MOST] = {0}, longest = 0;

    for (uint64_t begin = 0; begin < batches; begin += each) {
        uint64_t n = batches - begin < each ? batches - begin : each;
        uint32_t first = 0;

        for (uint32_t i = 1; i < workers; i++)
            if (made[i] < made[first])
                first = i;
        made[first] += n;
        longest = made[first] > longest ? made[first] : longest;
    }
    return longest;
}

static void the_longest_is_what_workers_in_turns_make(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= WORKERS_MOST; workers++)
        for (uint64_t batches = 1; batches < 300; batches += 7)
            for (uint64_t each = 1; each <= 40; each++)
                assert_int_equal(wf_split_size_longest(batches, workers, each),
                                 play(batches, workers, each));
}

/* 60,000 records in batches of 128 are 469: 34 splits of 14 would have one of two workers wait for
 * 7 steps. */
static void two_workers_of_an_epoch_end_together(void **state)
{
    (void)state;
    assert_int_equal(wf_split_size(469, 2, &plain), 13);
    assert_int_equal(play(469, 2, 13), (469 + 1) / 2);
    assert_int_equal(wf_split_size(469, 2, &(wf_split_job){.in_step = true}), 47);
    assert_int_equal(play(469, 2, 47), (469 + 1) / 2);
}

static void sizes_are_of_use_and_no_worker_waits_longer_than_before(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= WORKERS_MOST; workers++)
        for (uint64_t batches = 1; batches < BATCHES_MOST; batches += 11)
            for (int kind = 0; kind < 4; kind++) {
                const wf_split_job job = {.drains = kind & 1, .in_step = kind & 2};
                uint64_t each = wf_split_size(batches, workers, &job);
                uint64_t wanted = batches / (workers * (job.in_step ? 4u : 16u));
                uint64_t least = (wanted < 64 ? wanted : 64) / 2;

                assert_in_range(each, least ? least : 1, 64);
                if (!job.drains && wanted > 0 && wanted <= 64)
                    assert_true(play(batches, workers, each) <= play(batches, workers, wanted));
            }
}

static void one_worker_has_a_sixteenth_each(void **state)
{
    (void)state;
    assert_int_equal(wf_split_size(469, 1, &plain), 29);
    assert_int_equal(wf_split_size(469, 1, &(wf_split_job){.drains = true}), 48);
    assert_int_equal(wf_split_size(1, 1, &plain), 1);
    assert_int_equal(wf_split_size(1u << 30, 1, &plain), 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_is_what_workers_in_turns_make),
        cmocka_unit_test(two_workers_of_an_epoch_end_together),
        cmocka_unit_test(sizes_are_of_use_and_no_worker_waits_longer_than_before),
        cmocka_unit_test(one_worker_has_a_sixteenth_each),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
