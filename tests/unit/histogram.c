/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/histogram.c - where numbers are counted, and what quantiles come out. */
#include "common/base/histogram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static uint64_t only(uint64_t value)
{
    wf_histogram h = {0};

    wf_histogram_add(&h, value);
    return wf_histogram_quantile(&h, 1);
}

static void small_numbers_are_exact_and_large_ones_within_a_quarter(void **unused)
{
    size_t last = 0;

    (void)unused;
    for (uint64_t v = 0; v < 32; v++)
        assert_int_equal(only(v), v);
    for (uint64_t v = 32; v < 1 << 20; v += 1 + v / 50) {
        uint64_t said = only(v);

        assert_true(said >= v && (double)said < 1.25 * (double)v);
        assert_true(wf_histogram_at(v) >= last && wf_histogram_at(v) < WF_HISTOGRAM - 1);
        last = wf_histogram_at(v);
    }
    assert_int_equal(wf_histogram_at(1 << 20), WF_HISTOGRAM - 1);
    assert_int_equal(wf_histogram_at(UINT64_MAX), WF_HISTOGRAM - 1);
}

static void quantiles_are_numbers_that_so_many_are_not_above(void **unused)
{
    wf_histogram h = {0}, other = {0};

    (void)unused;
    assert_int_equal(wf_histogram_quantile(&h, 0.99), 0);
    for (int i = 0; i < 99; i++)
        wf_histogram_add(&h, 2);
    assert_int_equal(wf_histogram_quantile(&h, 0), 2);
    wf_histogram_add(&other, 9);
    wf_histogram_merge(&h, &other);
    assert_int_equal(wf_histogram_count(&h), 100);
    assert_int_equal(wf_histogram_quantile(&h, 0.5), 2);
    assert_int_equal(wf_histogram_quantile(&h, 0.99), 2);
    assert_int_equal(wf_histogram_quantile(&h, 1), 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_numbers_are_exact_and_large_ones_within_a_quarter),
        cmocka_unit_test(quantiles_are_numbers_that_so_many_are_not_above),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
