/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/bench_figures.c - percentiles, rates and sizes of `weft bench`. */
#include "cmd/cli/bench/figures.h"
#include "cmd/cli/bench/job.h"
#include "cmd/cli/cli.h"
#include "common/base/cc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static void percentiles_are_by_nearest_rank(void **state)
{
    wf_samples s = {0};

    (void)state;
    assert_int_equal(wf_samples_at(&s, 0.5), 0);
    wf_samples_add(&s, 7);
    assert_int_equal(wf_samples_at(&s, 0.01), 7);
    assert_int_equal(wf_samples_at(&s, 0.5), 7);
    assert_int_equal(wf_samples_at(&s, 1), 7);
    wf_samples_close(&s);
    for (int64_t i = 100; i > 0; i--) /* 1..100, from the largest */
        wf_samples_add(&s, i);
    assert_int_equal(wf_samples_at(&s, 0.5), 50);
    assert_int_equal(wf_samples_at(&s, 0.9), 90);
    assert_int_equal(wf_samples_at(&s, 0.99), 99);
    assert_int_equal(wf_samples_at(&s, 1), 100);
    wf_samples_close(&s);
    for (int64_t i = 1; i <= 4; i++)
        wf_samples_add(&s, i * 10);
    assert_int_equal(wf_samples_at(&s, 0.5), 20);
    assert_int_equal(wf_samples_at(&s, 0.51), 30);
    assert_int_equal(wf_samples_at(&s, 0.99), 40);
    wf_samples_close(&s);
}

static void merged_samples_are_those_of_both(void **state)
{
    wf_samples a = {0}, b = {0};

    (void)state;
    for (int64_t i = 0; i < 1000; i++)
        wf_samples_add(i % 2 ? &a : &b, i);
    wf_samples_merge(&a, &b);
    assert_int_equal(a.n, 1000);
    assert_false(a.failed);
    assert_int_equal(wf_samples_at(&a, 0.001), 0);
    assert_int_equal(wf_samples_at(&a, 0.25), 249);
    assert_int_equal(wf_samples_at(&a, 1), 999);
    wf_samples_close(&a);
    wf_samples_close(&b);
}

static void work_moves_what_it_must(void **state)
{
    static const struct {
        const char *name;
        uint64_t sent, plain, adam;
    } want[] = {{"push", 100, 300, 700}, {"pull", 100, 100, 100}, {"push+pull", 200, 400, 800}};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(want); i++) {
        const wf_bench_work *work = &wf_bench_works[i];

        assert_string_equal(work->name, want[i].name);
        assert_int_equal(wf_bench_sent(work, 100), want[i].sent);
        assert_int_equal(wf_bench_moved(work, 100, 0), want[i].plain);
        assert_int_equal(wf_bench_moved(work, 100, 2), want[i].adam);
    }
    assert_true(wf_bench_rate(3000, 1500) == 2e9);
    assert_true(wf_bench_rate(3000, 0) == 0);
}

/* As a job's variable is cut: two slices for each ps, from 16 KiB to 4 MiB, of whole float32. */
static void slices_are_those_of_jobs(void **state)
{
    static const struct {
        size_t bytes;
        uint32_t n_ps;
        size_t slice;
    } want[] = {{4, 1, 16 << 10},
                {1 << 20, 1, 512 << 10},
                {1 << 20, 2, 256 << 10},
                {1000004, 1, 500000},
                {100000000, 1, 4 << 20}};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(want); i++) {
        wf_bench_case of = {.bytes = want[i].bytes, .n_ps = want[i].n_ps};

        assert_int_equal(wf_bench_slice_bytes(&of), want[i].slice);
    }
}

static void sizes_have_binary_and_decimal_units(void **state)
{
    static const struct {
        const char *text;
        size_t bytes;
    } good[] = {{"17", 17},    {"4KiB", 4096},       {"512 MiB", 512 << 20},
                {"4kB", 4000}, {"100MB", 100000000}, {"2GB", 2000000000}};
    static const char *const bad[] = {"",      "0",  "KiB",    "4kb",   "4 M",
                                      "-4KiB", "4K", "1.5MiB", "4KiBs", "99999999999TiB"};
    wf_err err;
    size_t n;

    (void)state;
    for (size_t i = 0; i < WF_COUNT(good); i++) {
        assert_int_equal(wf_arg_bytes("--sizes", good[i].text, &n, &err), WF_OK);
        assert_int_equal(n, good[i].bytes);
    }
    for (size_t i = 0; i < WF_COUNT(bad); i++) {
        assert_int_equal(wf_arg_bytes("--sizes", bad[i], &n, &err), WF_USAGE);
        assert_non_null(strstr(err.what, bad[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_are_by_nearest_rank),
        cmocka_unit_test(merged_samples_are_those_of_both),
        cmocka_unit_test(work_moves_what_it_must),
        cmocka_unit_test(slices_are_those_of_jobs),
        cmocka_unit_test(sizes_have_binary_and_decimal_units),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
