/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/clocks.c - who waits for whom, and histories of workers that come, go and compute by
 * chance: the one that is furthest behind never waits, and nobody is further ahead than allowed. */
#include "ps/clocks.h"
#include "common/base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { WORKERS = 5 };

static void apply(wf_seen *seen, uint64_t incarnation, uint32_t upto)
{
    for (uint32_t step = 1; step <= upto; step++)
        if (!wf_seen_before(seen, incarnation, step))
            assert_int_equal(wf_seen_mark(seen, incarnation, step, NULL), WF_OK);
}

static void a_worker_waits_for_steps_that_are_older_than_its_clock_and_the_staleness(void **unused)
{
    wf_clocks c = {.staleness = 2};
    wf_seen seen = {0};
    uint32_t clock;
    bool moved;

    (void)unused;
    assert_int_equal(wf_clocks_join(&c, 11, 1, 1, &clock, NULL), WF_OK);
    assert_int_equal(clock, 1);
    assert_int_equal(wf_clocks_join(&c, 22, 1, 1, &clock, NULL), WF_OK);
    assert_int_equal(clock, 1);
    assert_null(wf_clocks_late(&c, 11, 3, &seen));
    assert_int_equal(wf_clocks_late(&c, 11, 4, &seen)->incarnation, 22);
    apply(&seen, 11, 3);
    assert_int_equal(wf_clocks_late(&c, 11, 4, &seen)->incarnation, 22);
    apply(&seen, 22, 1);
    assert_null(wf_clocks_late(&c, 11, 4, &seen));
    assert_non_null(wf_clocks_late(&c, 11, 5, &seen));
    /* One who joins later begins at the smallest clock, whatever its step. */
    assert_int_equal(wf_clocks_note(&c, 11, 4, 4, &moved, NULL), WF_OK);
    assert_int_equal(wf_clocks_note(&c, 22, 2, 2, &moved, NULL), WF_OK);
    assert_false(moved);
    assert_int_equal(wf_clocks_join(&c, 33, 1, 101, &clock, NULL), WF_OK);
    assert_int_equal(clock, 2);
    apply(&seen, 33, 64);
    assert_int_equal(wf_clocks_late(&c, 11, 5, &seen)->incarnation, 22);
    apply(&seen, 22, 2);
    assert_int_equal(wf_clocks_late(&c, 11, 5, &seen)->incarnation, 33);
    /* Another ps said 4: what it had to do here is less. */
    assert_int_equal(wf_clocks_note(&c, 33, 101, 4, &moved, NULL), WF_OK);
    assert_true(moved);
    apply(&seen, 33, 100);
    assert_null(wf_clocks_late(&c, 11, 5, &seen));
    assert_true(wf_clocks_leave(&c, 22, 0));
    assert_false(wf_clocks_leave(&c, 22, 0));
    assert_null(wf_clocks_late(&c, 11, 6, &seen));
    assert_non_null(wf_clocks_late(&c, 11, 7, &seen));
    assert_true(wf_clocks_leave(&c, 33, 0));
    assert_null(wf_clocks_late(&c, 11, 1000, &seen));
    wf_clocks_close(&c);
    wf_seen_close(&seen);
}

/* One slice; each worker knows its own shift. */
typedef struct world {
    wf_clocks clocks;
    wf_seen seen;
    struct {
        bool in;
        uint32_t step; /* the last one applied */
        int64_t shift;
    } workers[WORKERS];
} world;

static int64_t clock_of(const world *w, int i)
{
    return w->workers[i].step + 1 + w->workers[i].shift;
}

static void join(world *w, int i)
{
    uint32_t clock;

    assert_int_equal(
        wf_clocks_join(&w->clocks, (uint64_t)i + 1, 0, w->workers[i].step + 1, &clock, NULL),
        WF_OK);
    w->workers[i].in = true;
    w->workers[i].shift = (int64_t)clock - w->workers[i].step - 1;
}

/* A whole step: it is pulled, unless that has to wait, and pushed. */
static bool step(world *w, int i)
{
    int64_t clock = clock_of(w, i);
    bool moved;

    assert_int_equal(wf_clocks_note(&w->clocks, (uint64_t)i + 1, w->workers[i].step + 1,
                                    (uint32_t)clock, &moved, NULL),
                     WF_OK);
    if (wf_clocks_late(&w->clocks, (uint64_t)i + 1, (uint32_t)clock, &w->seen))
        return false;
    w->workers[i].step++;
    assert_int_equal(wf_seen_mark(&w->seen, (uint64_t)i + 1, w->workers[i].step, NULL), WF_OK);
    return true;
}

static int last_of(const world *w)
{
    int last = -1;

    for (int i = 0; i < WORKERS; i++)
        if (w->workers[i].in && (last < 0 || clock_of(w, i) < clock_of(w, last)))
            last = i;
    return last;
}

static void check_apart(const world *w)
{
    int last = last_of(w);

    for (int i = 0; i < WORKERS; i++) /* one may have joined where the last one was just applied */
        if (w->workers[i].in)
            assert_true(clock_of(w, i) - clock_of(w, last) <= (int64_t)w->clocks.staleness + 2);
}

static void play(uint64_t seed)
{
    world w = {.clocks.staleness = (uint32_t)(seed % 4)};
    uint64_t draws = 0;

    for (int turn = 0; turn < 400; turn++) {
        uint64_t draw = wf_rng_u64((wf_rng_key){seed}, draws++);
        int i = (int)(draw % WORKERS), last;

        if (!w.workers[i].in && draw / WORKERS % 4 == 0)
            join(&w, i);
        else if (w.workers[i].in && draw / WORKERS % 16 == 0)
            w.workers[i].in = !wf_clocks_leave(&w.clocks, (uint64_t)i + 1, 0);
        else if (w.workers[i].in)
            (void)step(&w, i);
        check_apart(&w);
        last = last_of(&w);
        if (last >= 0 && draw / 64 % 8 == 0)
            assert_true(step(&w, last));
    }
    wf_clocks_close(&w.clocks);
    wf_seen_close(&w.seen);
}

static void the_last_one_never_waits_and_nobody_runs_away(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 500; seed++)
        play(seed);
}

static const wf_clock *row_of(const wf_clocks *c, uint64_t incarnation)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->rows[i].incarnation == incarnation)
            return &c->rows[i];
    return NULL;
}

/* Of a worker that has come in again the newer word counts, whoever has heard it: a pull, or
 * another ps, which gives a slice. */
static void who_has_come_in_again_is_in(void **unused)
{
    wf_clocks c = {.staleness = 0};
    bool moved;

    (void)unused;
    assert_int_equal(wf_clocks_note(&c, 11, 3, 4, &moved, NULL), WF_OK);
    assert_true(wf_clocks_leave(&c, 11, 4));
    assert_int_equal(wf_clocks_learn(&c, &(wf_clock){11, 1, 4, UINT32_MAX, 0, false}, NULL), WF_OK);
    assert_int_equal(row_of(&c, 11)->last, 4); /* the other has not heard yet that it left */
    assert_int_equal(wf_clocks_note(&c, 11, 4, 6, &moved, NULL), WF_OK);
    assert_int_equal(row_of(&c, 11)->last, UINT32_MAX);
    assert_true(wf_clocks_leave(&c, 11, 6));
    assert_int_equal(wf_clocks_learn(&c, &(wf_clock){11, 4, 9, UINT32_MAX, 0, false}, NULL), WF_OK);
    assert_int_equal(row_of(&c, 11)->last, UINT32_MAX);
    assert_int_equal(row_of(&c, 11)->at, 9);
    assert_int_equal(row_of(&c, 11)->shift, 4);
    assert_int_equal(wf_clocks_learn(&c, &(wf_clock){22, 0, 2, 5, 0, false}, NULL), WF_OK);
    assert_int_equal(row_of(&c, 22)->last, 5);
    wf_clocks_close(&c);
}

/* All had left, and the next join is at the first clock again. Who gives a slice has not heard of
 * either, and says what it was before; or has, and this one has not. */
static void what_was_before_a_join_counts_no_more(void **unused)
{
    wf_clocks c = {.staleness = 1};
    uint32_t clock;

    (void)unused;
    assert_int_equal(wf_clocks_join(&c, 11, 3, 11, &clock, NULL), WF_OK);
    assert_int_equal(clock, 1);
    assert_int_equal(wf_clocks_learn(&c, &(wf_clock){11, 1, 11, UINT32_MAX, 2, false}, NULL),
                     WF_OK);
    assert_int_equal(row_of(&c, 11)->shift, -10);
    assert_int_equal(wf_clocks_join(&c, 22, 1, 7, &clock, NULL), WF_OK);
    assert_int_equal(clock, 1);
    assert_int_equal(wf_clocks_learn(&c, &(wf_clock){22, -20, 1, UINT32_MAX, 2, false}, NULL),
                     WF_OK);
    assert_int_equal(row_of(&c, 22)->shift, -20);
    assert_int_equal(wf_clocks_join(&c, 22, 2, 21, &clock, NULL), WF_OK); /* its first word here */
    assert_int_equal(clock, 1);
    assert_int_equal(row_of(&c, 22)->number, 2);
    wf_clocks_close(&c);
}

/* It may have had the first answer when it asked again, and work by that. */
static void who_asks_again_is_told_the_same(void **unused)
{
    wf_clocks c = {.staleness = 0};
    uint32_t clock;
    bool moved;

    (void)unused;
    assert_int_equal(wf_clocks_note(&c, 22, 9, 9, &moved, NULL), WF_OK);
    assert_int_equal(wf_clocks_join(&c, 11, 5, 5, &clock, NULL), WF_OK);
    assert_int_equal(clock, 9);
    assert_int_equal(wf_clocks_note(&c, 22, 10, 10, &moved, NULL), WF_OK);
    c.done = 9;
    assert_int_equal(wf_clocks_join(&c, 11, 5, 5, &clock, NULL), WF_OK);
    assert_int_equal(clock, 9);
    assert_int_equal(row_of(&c, 11)->shift, 4);
    assert_int_equal(wf_clocks_join(&c, 11, 6, 6, &clock, NULL), WF_OK); /* another time */
    assert_int_equal(clock, 10);
    wf_clocks_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_waits_for_steps_that_are_older_than_its_clock_and_the_staleness),
        cmocka_unit_test(the_last_one_never_waits_and_nobody_runs_away),
        cmocka_unit_test(who_has_come_in_again_is_in),
        cmocka_unit_test(what_was_before_a_join_counts_no_more),
        cmocka_unit_test(who_asks_again_is_told_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
