/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/pool.c - every element is done once, whatever the threads, the sizes and the grain. */
#include "common/kernels/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 1000 };

static void mark(void *arg, int64_t begin, int64_t end)
{
    uint8_t *seen = arg;

    for (int64_t i = begin; i < end; i++)
        seen[i]++;
}

static void every_element_is_done_once(void **state)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 7, 64, 999, MOST};
    wf_err err;

    (void)state;
    for (uint32_t threads = 1; threads <= 5; threads++) {
        wf_pool *p = NULL;

        assert_int_equal(wf_pool_new(threads, &p, &err), WF_OK);
        assert_int_equal(wf_pool_threads(p), threads);
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            for (int64_t grain = 0; grain <= MOST; grain = grain * 3 + 1) {
                uint8_t seen[MOST] = {0};

                wf_pool_for(p, sizes[s], grain, mark, seen);
                for (int64_t i = 0; i < MOST; i++)
                    assert_int_equal(seen[i], i < sizes[s]);
            }
        wf_pool_free(&p);
        assert_null(p);
    }
}

static void without_a_pool_the_caller_does_it_all(void **state)
{
    uint8_t seen[MOST] = {0};

    (void)state;
    wf_pool_for(NULL, MOST, 1, mark, seen);
    assert_int_equal(seen[MOST - 1], 1);
    assert_int_equal(wf_pool_threads(NULL), 1);
}

static void add(void *arg, int64_t begin, int64_t end)
{
    atomic_fetch_add((_Atomic int64_t *)arg, end - begin);
}

/* Long enough that workers fall asleep between some rounds when the machine is busy. */
static void many_rounds_lose_nothing(void **state)
{
    enum { ROUNDS = 2000 };
    _Atomic int64_t sum = 0;
    wf_pool *p = NULL;
    wf_err err;

    (void)state;
    assert_int_equal(wf_pool_new(3, &p, &err), WF_OK);
    for (int i = 0; i < ROUNDS; i++)
        wf_pool_for(p, 100, 1, add, &sum);
    wf_pool_free(&p);
    assert_int_equal(sum, (int64_t)ROUNDS * 100);
}

static void a_wrong_number_of_threads_is_refused(void **state)
{
    wf_pool *p = NULL;
    wf_err err;

    (void)state;
    assert_int_equal(wf_pool_new(0, &p, &err), WF_INVALID);
    assert_int_equal(wf_pool_new(WF_POOL_MAX + 1, &p, &err), WF_INVALID);
    assert_non_null(strstr(err.what, "257 threads"));
    assert_null(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_is_done_once),
        cmocka_unit_test(without_a_pool_the_caller_does_it_all),
        cmocka_unit_test(many_rounds_lose_nothing),
        cmocka_unit_test(a_wrong_number_of_threads_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
