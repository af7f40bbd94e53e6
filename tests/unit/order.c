/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/order.c - the order of an epoch's records: each one once, the same for everybody, and
 * few blocks at a time. */
#include "common/data/order.h"
#include "common/base/rng.h"
#include "common/base/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 5000 };

static void check_permutation(const wf_order *o)
{
    uint8_t *seen = calloc(o->n, 1);

    assert_non_null(seen);
    for (uint64_t i = 0; i < o->n; i++) {
        uint64_t record = wf_order_record(o, i);

        assert_true(record < o->n);
        assert_false(seen[record]);
        seen[record] = 1;
    }
    free(seen);
}

/* Positions of a window hold records of few blocks: those of a window, and at the end the short
 * block and the full ones that make no window. */
static void check_window(const wf_order *o)
{
    uint64_t n_blocks = o->n / o->block + 1, size = o->window * o->block;
    uint8_t *used = malloc(n_blocks);

    assert_non_null(used);
    for (uint64_t w = 0; w < o->windows; w++) {
        uint64_t end = w + 1 < o->windows ? (w + 1) * size : o->n, count = 0;

        memset(used, 0, n_blocks);
        for (uint64_t i = w * size; i < end; i++)
            used[wf_order_record(o, i) / o->block] = 1;
        for (uint64_t b = 0; b < n_blocks; b++)
            count += used[b];
        assert_true(count <= (w + 1 < o->windows ? o->window : 2 * o->window));
    }
    free(used);
}

static void each_record_has_one_position(void **state)
{
    wf_rng_key key = {11, 1};

    (void)state;
    for (uint64_t i = 0; i < 300; i++) {
        uint64_t n = 1 + wf_rng_below(key, 4 * i, MOST),
                 block = 1 + wf_rng_below(key, 4 * i + 1, 70);
        uint64_t window = 1 + wf_rng_below(key, 4 * i + 2, 40);
        wf_order o = wf_order_of(i, i % 5, n, block, window, true);

        check_permutation(&o);
        check_window(&o);
        o = wf_order_of(i, i % 5, n, block, window, false);
        assert_int_equal(wf_order_record(&o, n - 1), n - 1);
    }
}

static void without_blocks_it_is_the_permutation_of_all(void **state)
{
    wf_order o = wf_order_of(7, 3, 1000, 0, 0, true);

    (void)state;
    for (uint64_t i = 0; i < 1000; i++)
        assert_int_equal(wf_order_record(&o, i), wf_shuffle_at(7, 3, 1000, i));
}

static void epochs_seeds_and_windows_differ(void **state)
{
    wf_order a = wf_order_of(7, 0, 4000, 10, 20, true), b = wf_order_of(7, 1, 4000, 10, 20, true);
    wf_order c = wf_order_of(8, 0, 4000, 10, 20, true);
    uint32_t same_epoch = 0, same_seed = 0, in_place = 0, same_shape = 0;

    (void)state;
    for (uint64_t i = 0; i < 4000; i++) {
        uint64_t record = wf_order_record(&a, i);

        same_epoch += record == wf_order_record(&b, i);
        same_seed += record == wf_order_record(&c, i);
        in_place += record == i;
        same_shape += i >= 200 && record % 10 == wf_order_record(&a, i - 200) % 10;
    }
    assert_in_range(same_epoch, 0, 20); /* one in 200 by chance, were the blocks the same */
    assert_in_range(same_seed, 0, 20);
    assert_in_range(in_place, 0, 20);
    assert_in_range(same_shape, 200, 600); /* one in 10 by chance */
}

/* What is published cannot change: a job that is resumed goes on in the order that it began with.
 */
static void the_order_is_the_one_that_it_was(void **state)
{
    static const uint64_t records[] = {16, 18, 23, 15, 25, 24, 10, 20, 11, 14, 60, 61, 26, 64,
                                       68, 63, 21, 19, 27, 29, 28, 67, 62, 12, 22, 66, 65, 17,
                                       13, 69, 41, 48, 88, 30, 31, 81, 35, 85, 44, 83};
    wf_order o = wf_order_of(1, 2, 103, 10, 3, true);

    (void)state;
    for (uint64_t i = 0; i < WF_COUNT(records); i++)
        assert_int_equal(wf_order_record(&o, i), records[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_record_has_one_position),
        cmocka_unit_test(without_blocks_it_is_the_permutation_of_all),
        cmocka_unit_test(epochs_seeds_and_windows_differ),
        cmocka_unit_test(the_order_is_the_one_that_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
