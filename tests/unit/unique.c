/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/unique.c - against a sort of the standard library. */
#include "common/base/unique.h"
#include "common/base/rng.h"
#include "common/base/size.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 5000 };

static int by_number(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static void check(wf_unique *d, const uint64_t numbers[], size_t n)
{
    static uint64_t sorted[MOST], found[MOST];
    static int64_t places[MOST];
    size_t n_found, expected = 0;

    if (n)
        memcpy(sorted, numbers, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_number);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || sorted[i] != sorted[i - 1])
            sorted[expected++] = sorted[i];
    if (n)
        memcpy(found, numbers, n * sizeof *found); /* in place */
    assert_int_equal(wf_unique_find(d, found, n, found, &n_found, places, NULL), WF_OK);
    assert_int_equal(n_found, expected);
    assert_memory_equal(found, sorted, expected * sizeof *found);
    for (size_t i = 0; i < n; i++) {
        assert_in_range(places[i], 0, expected - 1);
        assert_true(found[places[i]] == numbers[i]);
    }
}

static void distinct_numbers_and_their_places_are_found(void **state)
{
    static const uint64_t ranges[] = {1, 2, 50, 2048, 2049, 1000000, UINT64_C(1) << 40, 0};
    static uint64_t numbers[MOST];
    wf_unique d = {0};

    (void)state;
    for (size_t r = 0; r < WF_COUNT(ranges); r++)
        for (size_t n = 0; n <= MOST; n = n ? n * 7 : 1) {
            for (size_t i = 0; i < n; i++) {
                uint64_t x = wf_rng_u64((wf_rng_key){r, 1}, i);

                numbers[i] = ranges[r] ? x % ranges[r] : x;
            }
            check(&d, numbers, n);
        }
    check(&d, (uint64_t[]){UINT64_MAX, 0, UINT64_MAX}, 3);
    wf_unique_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distinct_numbers_and_their_places_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
