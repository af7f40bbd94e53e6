/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/seen.c - a step of an incarnation is marked once, in whatever order steps come. */
#include "ps/seen.h"
#include "common/base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void a_step_is_marked_once(void **state)
{
    wf_seen s = {0};

    (void)state;
    assert_false(wf_seen_before(&s, 7, 1));
    assert_int_equal(wf_seen_mark(&s, 7, 1, NULL), WF_OK);
    assert_true(wf_seen_before(&s, 7, 1));
    assert_int_equal(wf_seen_mark(&s, 7, 1, NULL), WF_EXISTS);
    assert_false(wf_seen_before(&s, 8, 1)); /* another incarnation's is another */
    assert_int_equal(wf_seen_mark(&s, 8, 1, NULL), WF_OK);
    wf_seen_close(&s);
}

static void all_up_to_a_step_means_no_gap(void **state)
{
    wf_seen s = {0};

    (void)state;
    assert_true(wf_seen_all(&s, 7, 0));
    assert_false(wf_seen_all(&s, 7, 1));
    assert_int_equal(wf_seen_mark(&s, 7, 2, NULL), WF_OK);
    assert_false(wf_seen_all(&s, 7, 2));
    assert_int_equal(wf_seen_mark(&s, 7, 1, NULL), WF_OK);
    assert_true(wf_seen_all(&s, 7, 2));
    assert_false(wf_seen_all(&s, 7, 3));
    wf_seen_close(&s);
}

static void a_step_beyond_the_window_is_refused_and_not_marked(void **state)
{
    wf_seen s = {0};

    (void)state;
    assert_int_equal(wf_seen_mark(&s, 7, 65, NULL), WF_FULL);
    assert_int_equal(s.n, 0);
    assert_int_equal(wf_seen_mark(&s, 7, 64, NULL), WF_OK);
    assert_int_equal(wf_seen_mark(&s, 7, UINT32_MAX, NULL), WF_FULL);
    assert_int_equal(wf_seen_mark(&s, 7, 0, NULL), WF_EXISTS);
    for (uint32_t step = 1; step < 64; step++)
        assert_int_equal(wf_seen_mark(&s, 7, step, NULL), WF_OK);
    assert_true(wf_seen_all(&s, 7, 64));
    assert_int_equal(wf_seen_mark(&s, 7, 128, NULL), WF_OK);
    wf_seen_close(&s);
}

/* Against a plain list of what was marked. */
static void any_order_marks_each_step_once(void **state)
{
    enum { STEPS = 500, TRIES = 20000 };

    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        uint8_t marked[STEPS + 1] = {1};
        uint32_t low = 0, counted = 0;
        wf_seen s = {0};

        for (uint64_t i = 0; i < TRIES; i++) {
            uint32_t step = low + (uint32_t)wf_rng_below((wf_rng_key){seed, 3}, i, 70);
            wf_status rc;

            if (step > STEPS)
                step = STEPS;
            rc = wf_seen_mark(&s, 5, step, NULL);
            if (marked[step])
                assert_int_equal(rc, WF_EXISTS);
            else if (step - low > 64)
                assert_int_equal(rc, WF_FULL);
            else
                assert_int_equal(rc, WF_OK);
            counted += rc == WF_OK;
            marked[step] |= rc == WF_OK;
            while (low < STEPS && marked[low + 1])
                low++;
            assert_true(wf_seen_all(&s, 5, low));
        }
        assert_int_equal(counted, low);
        wf_seen_close(&s);
    }
}

static void an_incarnation_is_forgotten_by_itself(void **state)
{
    wf_seen s = {0};

    (void)state;
    for (uint64_t i = 1; i <= 10; i++)
        assert_int_equal(wf_seen_mark(&s, i, 1, NULL), WF_OK);
    wf_seen_forget(&s, 4);
    wf_seen_forget(&s, 99);
    assert_int_equal(s.n, 9);
    for (uint64_t i = 1; i <= 10; i++)
        assert_int_equal(wf_seen_before(&s, i, 1), i != 4);
    wf_seen_close(&s);
}

/* Enough incarnations for the table, with some forgotten on the way. */
static void many_incarnations_are_kept_apart(void **state)
{
    wf_seen s = {0};

    (void)state;
    for (uint64_t i = 1; i <= 500; i++)
        for (uint32_t step = 1; step <= 1 + i % 3; step++)
            assert_int_equal(wf_seen_mark(&s, i * UINT64_C(0x9e3779b97f4a7c15), step, NULL), WF_OK);
    for (uint64_t i = 1; i <= 500; i += 5)
        wf_seen_forget(&s, i * UINT64_C(0x9e3779b97f4a7c15));
    assert_int_equal(s.n, 400);
    for (uint64_t i = 1; i <= 500; i++)
        for (uint32_t step = 1; step <= 4; step++)
            assert_int_equal(wf_seen_before(&s, i * UINT64_C(0x9e3779b97f4a7c15), step),
                             i % 5 != 1 && step <= 1 + i % 3);
    wf_seen_close(&s);
}

/* A view may remove nearly all workers of a large cluster at once, from each slice. */
static void forgetting_costs_the_same_however_many_there_are(void **state)
{
    enum { MANY = 50000, LONGEST_MS = 2000 };
    wf_seen s = {0};
    clock_t began;

    (void)state;
    for (uint64_t i = 1; i <= MANY; i++)
        assert_int_equal(wf_seen_mark(&s, i * UINT64_C(0x9e3779b97f4a7c15), 1, NULL), WF_OK);
    began = clock();
    for (uint64_t i = 1; i < MANY; i++)
        wf_seen_forget(&s, i * UINT64_C(0x9e3779b97f4a7c15));
    assert_in_range((clock() - began) / (CLOCKS_PER_SEC / 1000), 0, LONGEST_MS);
    assert_int_equal(s.n, 1);
    assert_true(wf_seen_before(&s, MANY * UINT64_C(0x9e3779b97f4a7c15), 1));
    wf_seen_close(&s);
}

/* What moves with its slice comes out as it went in; other bytes are refused. */
static void rows_are_written_and_read(void **state)
{
    wf_seen s = {0}, other = {0};
    wf_bytes bytes = {0};

    (void)state;
    for (uint64_t i = 1; i <= 30; i++)
        for (uint32_t step = 1; step <= i; step += 1 + step % 2)
            assert_int_equal(wf_seen_mark(&s, i * UINT64_C(0x9e3779b97f4a7c15), step, NULL), WF_OK);
    wf_seen_encode(&s, &bytes);
    assert_int_equal(bytes.size, 30 * 20);
    assert_int_equal(wf_seen_decode(&other, bytes.data, bytes.size, NULL), WF_OK);
    for (uint64_t i = 1; i <= 30; i++)
        for (uint32_t step = 1; step <= 40; step++)
            assert_int_equal(wf_seen_before(&s, i * UINT64_C(0x9e3779b97f4a7c15), step),
                             wf_seen_before(&other, i * UINT64_C(0x9e3779b97f4a7c15), step));
    wf_seen_close(&other);
    assert_int_equal(wf_seen_decode(&other, bytes.data, bytes.size - 1, NULL), WF_PROTO);
    wf_seen_close(&other);
    memcpy(bytes.data + 20, bytes.data, 20); /* the same worker twice */
    assert_int_equal(wf_seen_decode(&other, bytes.data, 40, NULL), WF_PROTO);
    wf_seen_close(&other);
    bytes.data[12] |= 1; /* the step behind the lowest is applied */
    assert_int_equal(wf_seen_decode(&other, bytes.data, 20, NULL), WF_PROTO);
    wf_seen_close(&other);
    wf_seen_close(&s);
    wf_bytes_close(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_written_and_read),
        cmocka_unit_test(many_incarnations_are_kept_apart),
        cmocka_unit_test(forgetting_costs_the_same_however_many_there_are),
        cmocka_unit_test(a_step_is_marked_once),
        cmocka_unit_test(all_up_to_a_step_means_no_gap),
        cmocka_unit_test(a_step_beyond_the_window_is_refused_and_not_marked),
        cmocka_unit_test(any_order_marks_each_step_once),
        cmocka_unit_test(an_incarnation_is_forgotten_by_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
