/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/master_splits.c - how long the splits are that a job does not give the length of. */
#include "master_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { BATCH = 4 };

/* Batches of a split, where two workers have an epoch of so many. */
static uint64_t split_of(uint32_t batches, bool drains, bool rolls_back)
{
    stage *s = stage_new();
    const stage_player *p;
    uint64_t n;

    s->model.batch = BATCH;
    s->model.records = batches * BATCH;
    s->model.drains = drains;
    s->model.rolls_back = rolls_back;
    stage_begin_lazy(s);
    p = &s->players[1];
    n = (p->split.end - p->split.begin) / BATCH;
    stage_free(&s);
    return n;
}

static void a_worker_has_sixteen_of_at_most_64_batches(void **state)
{
    (void)state;
    assert_int_equal(split_of(20, false, false), 1);
    assert_int_equal(split_of(320, false, false), 10);
    assert_int_equal(split_of(6400, false, false), 64);
}

static void pipelines_that_drain_do_so_seldom(void **state)
{
    (void)state;
    assert_int_equal(split_of(20, true, false), 5);
    assert_int_equal(split_of(384, true, false), 48);
    assert_int_equal(split_of(320, true, false), 40); /* so that both make 160 */
    assert_int_equal(split_of(1760, true, false), 55);
    assert_int_equal(split_of(6400, true, false), 64);
}

static void a_split_that_may_be_left_out_is_short(void **state)
{
    (void)state;
    assert_int_equal(split_of(320, true, true), 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_has_sixteen_of_at_most_64_batches),
        cmocka_unit_test(pipelines_that_drain_do_so_seldom),
        cmocka_unit_test(a_split_that_may_be_left_out_is_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
