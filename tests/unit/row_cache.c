/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/row_cache.c - cached rows of a table: none is used that is too old, each has the
 * values that were put last, and frequent rows stay. */
#include "worker/exchange/row_cache.h"
#include "common/base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { WIDTH = 3, IDS = 500, STEPS = 2000, STALENESS = 5 };

static wf_row_cache *open_cache(uint64_t rows, uint32_t staleness)
{
    wf_row_cache *c = NULL;

    assert_int_equal(wf_row_cache_new(rows, WIDTH, staleness, &c, NULL), WF_OK);
    return c;
}

static void put(wf_row_cache *c, uint64_t id, uint32_t step)
{
    wf_row_cache_put(c, id, step, (float[]){(float)id, (float)step, 1});
}

/* Against the step at which each row was put last. */
static void what_is_found_is_fresh_and_right(void **state)
{
    const wf_rng_key key = {3, 4};
    wf_row_cache *c = open_cache(128, STALENESS);
    uint32_t last[IDS] = {0}, found = 0;

    (void)state;
    for (uint32_t step = 1; step <= STEPS; step++) {
        for (uint32_t i = 0; i < 20; i++) {
            uint64_t id = wf_rng_below(key, step * 20 + i, IDS);
            const float *row = wf_row_cache_find(c, id, step);

            if (row) {
                found++;
                wf_row_cache_use(c, id);
                assert_true(step - last[id] <= STALENESS); /* C1 */
                assert_true(row[0] == (float)id && row[1] == (float)last[id] && row[2] == 1);
            } else {
                put(c, id, step);
                last[id] = step;
            }
        }
    }
    assert_true(found > 1000);
    wf_row_cache_free(&c);
}

static void a_row_is_used_as_long_as_the_bound_says(void **state)
{
    wf_row_cache *c = open_cache(64, 2);

    (void)state;
    put(c, 7, 10);
    assert_non_null(wf_row_cache_find(c, 7, 10));
    assert_non_null(wf_row_cache_find(c, 7, 12));
    assert_null(wf_row_cache_find(c, 7, 13));
    put(c, 7, 13);
    assert_non_null(wf_row_cache_find(c, 7, 13));
    wf_row_cache_clear(c);
    assert_null(wf_row_cache_find(c, 7, 13));
    wf_row_cache_free(&c);
}

/* One set, and more rows than it has places: the one that is read all the time stays. */
static void a_frequent_row_outlasts_the_others(void **state)
{
    wf_row_cache *c = open_cache(WF_ROW_WAYS, 1000);

    (void)state;
    put(c, 1, 1);
    for (uint64_t id = 2; id < 200; id++) {
        assert_non_null(wf_row_cache_find(c, 1, 1));
        wf_row_cache_use(c, 1);
        wf_row_cache_use(c, 1);
        put(c, id, 1);
    }
    assert_non_null(wf_row_cache_find(c, 1, 1));
    assert_null(wf_row_cache_find(c, 2, 1));
    wf_row_cache_free(&c);
}

/* Ids of any 64 bits, 0 among them. */
static void ids_are_any_numbers(void **state)
{
    wf_row_cache *c = open_cache(64, 1);

    (void)state;
    assert_null(wf_row_cache_find(c, 0, 1));
    put(c, 0, 1);
    put(c, UINT64_MAX, 1);
    assert_non_null(wf_row_cache_find(c, 0, 1));
    assert_non_null(wf_row_cache_find(c, UINT64_MAX, 1));
    wf_row_cache_free(&c);
}

static void one_that_no_memory_holds_is_refused(void **state)
{
    wf_row_cache *c = NULL;

    (void)state;
    assert_int_equal(wf_row_cache_new(UINT64_C(1) << 39, UINT64_C(1) << 30, 1, &c, NULL),
                     WF_INVALID);
    assert_null(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_found_is_fresh_and_right),
        cmocka_unit_test(a_row_is_used_as_long_as_the_bound_says),
        cmocka_unit_test(a_frequent_row_outlasts_the_others),
        cmocka_unit_test(ids_are_any_numbers),
        cmocka_unit_test(one_that_no_memory_holds_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
