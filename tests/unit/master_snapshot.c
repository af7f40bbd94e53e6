/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/master_snapshot.c - a snapshot says what all records before it say. Two masters meet
 * the same events; one writes a snapshot at every commit, the other none. Whoever begins from the
 * disk of the one or of the other comes to the same state. */
#include "master_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct pair {
    stage *with, *without;
} pair;

static int begin_pair(void **state)
{
    pair *p = calloc(1, sizeof *p);

    assert_non_null(p);
    p->with = stage_new();
    p->without = stage_new();
    for (int i = 0; i < 2; i++) {
        stage *s = i ? p->with : p->without;

        s->journal_least = i ? 1 : SIZE_MAX / 8;
        s->model.evaluates = true;
        stage_kill(s);
        stage_raise(s);
        stage_cast(s);
    }
    *state = p;
    return 0;
}

static int end_pair(void **state)
{
    pair *p = *state;

    stage_free(&p->with);
    stage_free(&p->without);
    free(p);
    return 0;
}

static void replays_to_the_same(pair *p)
{
    size_t n = 0, k = 0;
    char *a = stage_replayed(p->with, &n), *b = stage_replayed(p->without, &k);

    assert_int_equal(n, k);
    assert_memory_equal(a, b, n);
    free(a);
    free(b);
}

static void turn(pair *p, int64_t ms)
{
    stage_turn(p->with, ms);
    stage_turn(p->without, ms);
    replays_to_the_same(p);
}

static void submit(pair *p, const char *job)
{
    assert_int_equal(wf_master_submit(p->with->master, job, "ledger", "a.yaml", false, NULL),
                     WF_OK);
    assert_int_equal(wf_master_submit(p->without->master, job, "ledger", "a.yaml", false, NULL),
                     WF_OK);
}

static void until(pair *p, const char *job, const char *wanted)
{
    for (int i = 0; i < 200; i++) {
        if (strcmp(wf_master_job_state(p->with->master, job), wanted) == 0)
            return;
        turn(p, 20);
    }
    fail_msg("job %s is %s", job, wf_master_job_state(p->with->master, job));
}

/* Workers stay at their splits. */
static void begin_lazy(pair *p)
{
    stage *both[2] = {p->with, p->without};

    for (int i = 0; i < 2; i++)
        both[i]->players[1].lazy = both[i]->players[2].lazy = true;
    submit(p, "one");
    until(p, "one", "running");
}

static void ask(pair *p, const char *command, const char *job)
{
    stage_do(p->with, command, job);
    stage_do(p->without, command, job);
    replays_to_the_same(p);
}

static void of_a_job_to_its_end(void **state)
{
    pair *p = *state;

    submit(p, "one");
    submit(p, "two");
    until(p, "one", "done");
    until(p, "two", "done");
    turn(p, 100);
}

/* A worker is lost within an epoch, and comes again; the job is stopped and goes on. */
static void of_deaths_and_stops(void **state)
{
    pair *p = *state;
    stage *both[2] = {p->with, p->without};

    begin_lazy(p);
    turn(p, 20);
    for (int i = 0; i < 2; i++)
        stage_leave(&both[i]->players[1]);
    for (int i = 0; i < 60; i++)
        turn(p, 100);
    for (int i = 0; i < 2; i++)
        stage_enter(both[i], WF_ROLE_WORKER, 0, 40);
    turn(p, 100);
    for (int i = 0; i < 2; i++)
        both[i]->players[2].lazy = false;
    ask(p, "stop", "one");
    until(p, "one", "stopped");
    submit(p, "two");
    until(p, "two", "done");
    ask(p, "recover", "one");
    until(p, "one", "done");
}

/* The master itself starts again, and after it a new session. */
static void of_masters_and_sessions(void **state)
{
    pair *p = *state;
    stage *both[2] = {p->with, p->without};

    begin_lazy(p);
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < 2; i++) {
            stage_kill(both[i]);
            both[i]->session = k == 2 ? "second" : "first";
            stage_raise(both[i]);
        }
        for (int i = 0; i < 5; i++)
            turn(p, 100);
    }
    assert_string_equal(wf_master_job_state(p->with->master, "one"), "interrupted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(of_a_job_to_its_end, begin_pair, end_pair),
        cmocka_unit_test_setup_teardown(of_deaths_and_stops, begin_pair, end_pair),
        cmocka_unit_test_setup_teardown(of_masters_and_sessions, begin_pair, end_pair),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
