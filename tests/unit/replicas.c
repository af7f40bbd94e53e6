/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/replicas.c - how records are divided among replicas, and who drives them. */
#include "worker/replicas.h"
#include "common/base/clock.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include <cmocka.h>

static void shares_cover_a_batch_once_and_differ_by_one(void **unused)
{
    (void)unused;
    for (uint32_t n = 1; n <= WF_REPLICAS_MOST; n++)
        for (uint64_t records = 0; records < 70; records++) {
            uint64_t end = 0, most = 0, least = UINT64_MAX;

            for (uint32_t i = 0; i < n; i++) {
                uint64_t begin, share = wf_replica_share(records, n, i, &begin);

                assert_int_equal(begin, end);
                end = begin + share;
                assert_true(i == 0 || share <= least); /* the first replicas have more */
                most = share > most ? share : most;
                least = share < least ? share : least;
            }
            assert_int_equal(end, records);
            assert_true(most - least <= 1);
        }
}

typedef struct seen {
    atomic_int times[3], met;
} seen;

/* Returns once all three have come: none waits for another to end. */
static void meet(void *arg, uint32_t i)
{
    const int64_t until_ns = wf_now_ns() + 60 * WF_NS_PER_S;
    seen *s = arg;

    atomic_fetch_add(&s->times[i], 1);
    atomic_fetch_add(&s->met, 1);
    while (atomic_load(&s->met) < 3 && wf_now_ns() < until_ns)
        sched_yield();
    assert_int_equal(atomic_load(&s->met), 3);
}

static void each_replica_on_a_processor_has_threads_of_its_own(void **unused)
{
    static const wf_device *const devices[] = {&wf_cpu, &wf_cpu, &wf_cpu};
    static const uint32_t threads[][4] = {{1, 1, 1, 1}, {3, 1, 1, 1}, {7, 3, 2, 2}};

    (void)unused;
    for (size_t k = 0; k < sizeof threads / sizeof threads[0]; k++) {
        wf_pool *pool = NULL;
        wf_replicas r;
        seen s = {0};

        assert_int_equal(wf_pool_new(threads[k][0], &pool, NULL), WF_OK);
        assert_int_equal(wf_replicas_open(&r, devices, 3, true, pool, NULL), WF_OK);
        assert_int_equal(r.n, 3);
        for (uint32_t i = 0; i < 3; i++) {
            assert_int_equal(wf_pool_threads(r.on[i].pool), threads[k][1 + i]);
            assert_int_equal(r.on[i].n_devices, 1);
        }
        wf_replicas_each(&r, meet, &s);
        for (uint32_t i = 0; i < 3; i++)
            assert_int_equal(s.times[i], 1);
        wf_replicas_close(&r);
        wf_pool_free(&pool);
    }
}

static void what_is_not_mirrored_has_all_devices_once(void **unused)
{
    const wf_device other = {.name = "other"};
    const wf_device *const devices[] = {&other, &wf_cpu, &wf_cpu};
    wf_replicas r;

    (void)unused;
    assert_int_equal(wf_replicas_open(&r, devices, 3, false, NULL, NULL), WF_OK);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.on[0].n_devices, 2);
    assert_ptr_equal(r.on[0].devices[0], &other);
    assert_ptr_equal(r.on[0].devices[1], &wf_cpu);
    wf_replicas_close(&r);
}

static void devices_of_two_kinds_do_not_mirror_each_other(void **unused)
{
    const wf_device other = {.name = "cuda:3"};
    const wf_device *const devices[] = {&wf_cpu, &other};
    wf_replicas r;
    wf_err err;

    (void)unused;
    assert_int_equal(wf_replicas_open(&r, devices, 2, true, NULL, &err), WF_UNSUPPORTED);
    assert_non_null(strstr(err.what, "devices of one kind, and this worker has cpu and cuda:3"));
    assert_non_null(strstr(err.hint, "cluster.yaml"));
    wf_replicas_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_cover_a_batch_once_and_differ_by_one),
        cmocka_unit_test(each_replica_on_a_processor_has_threads_of_its_own),
        cmocka_unit_test(what_is_not_mirrored_has_all_devices_once),
        cmocka_unit_test(devices_of_two_kinds_do_not_mirror_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
