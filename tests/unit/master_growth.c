/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/master_growth.c - data that grows: workers hear of rounds, and only of those. */
#include "common/base/size.h"
#include "common/wire/control.h"
#include "master_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static const wf_listed files[] = {{"/in/a", 5, 1}, {"/in/b", 6, 1}, {"/in/c", 7, 1}};
enum { LONG_ENOUGH_MS = WF_MODEL_SETTLE_MS + 3 * WF_MODEL_POLL_MS };

static void begin(stage *s, bool lazy)
{
    s->model.grows = true;
    stage_cast(s);
    for (int i = 1; i <= STAGE_WORKERS; i++) {
        s->players[i].digest = 7;
        s->players[i].lazy = lazy;
    }
    stage_submit(s, "one", "");
    stage_until(s, "one", "running");
}

static void show(stage *s, size_t n)
{
    s->files = files;
    s->n_files = n;
    stage_wait(s, LONG_ENOUGH_MS);
}

static void each_round_has_the_files_that_are_new(void **state)
{
    stage *s = *state;

    begin(s, false);
    stage_wait(s, 1000);
    assert_int_equal(s->players[1].heard[WF_ROUND], 0);
    stage_job_says(s, "one", "rounds", "new files that match /in/*");
    show(s, 2);
    for (int i = 1; i <= STAGE_WORKERS; i++) {
        assert_int_equal(s->players[i].heard[WF_ROUND], 1);
        assert_int_equal(s->players[i].round_files, 2);
    }
    assert_true(s->players[1].dealt + s->players[2].dealt > 0);
    stage_job_says(s, "one", "rounds", "\"files\": 2");
    stage_job_says(s, "one", "rounds", "\"records\": 64");
    show(s, 3);
    assert_int_equal(s->players[1].round, 2);
    assert_int_equal(s->players[1].round_files, 1);
    stage_job_says(s, "one", "rounds", "\"records\": 128");
    assert_int_equal(s->players[1].heard[WF_START], 1); /* no new generation for that */
    stage_wait(s, WF_MODEL_IDLE_MS + 1000);
    stage_until(s, "one", "done"); /* idle for long enough */
}

/* Worker 1 dies, as its supervisor sees, and another process takes its place. */
static stage_player *replace_worker(stage *s, bool lazy)
{
    Weft__Died body = WEFT__DIED__INIT;
    stage_player *p;

    stage_leave(&s->players[2]);
    body.role = WF_ROLE_WORKER;
    body.index = 1;
    body.pid = s->players[2].incarnation;
    body.reason = (char *)"killed by signal 9";
    body.session = (char *)s->session;
    stage_say(&s->players[3], WF_DIED, &body.base);
    stage_turn(s, 20);
    p = stage_enter(s, WF_ROLE_WORKER, 1, 0x77);
    p->lazy = lazy;
    p->records = STAGE_RECORDS;
    p->digest = 7;
    stage_wait(s, 500);
    return p;
}

/* Its files may be gone by then. */
static void a_worker_that_comes_between_two_rounds_is_told_of_none(void **state)
{
    stage *s = *state;
    stage_player *p;

    begin(s, false);
    show(s, 1);
    p = replace_worker(s, false);
    assert_int_equal(p->heard[WF_START], 1);
    assert_int_equal(p->round, 0);
    assert_int_equal(p->heard[WF_ROUND], 0);
    show(s, 3);
    assert_int_equal(p->round, 2);
    assert_int_equal(p->round_files, 2);
}

/* One that comes within a round starts with it. */
static void a_worker_that_comes_within_a_round_starts_with_its_files(void **state)
{
    stage *s = *state;
    stage_player *p;

    begin(s, true);
    show(s, 2);
    p = replace_worker(s, true);
    assert_int_equal(p->heard[WF_START], 1);
    assert_int_equal(p->heard[WF_ROUND], 0);
    assert_int_equal(p->round, 1);
    assert_int_equal(p->round_files, 2);
    assert_int_equal(p->dealt, 1);
}

static void a_new_master_goes_on_with_the_round(void **state)
{
    stage *s = *state;

    begin(s, true);
    show(s, 2);
    stage_kill(s);
    stage_raise(s);
    stage_until(s, "one", "running");
    show(s, 3);
    assert_int_equal(s->players[1].heard[WF_ROUND], 1); /* it registers with the round */
    stage_job_says(s, "one", "rounds", "\"round\": 1");
    stage_job_says(s, "one", "rounds", "\"files_waiting\": 1");
}

static void workers_that_find_other_content_are_told(void **state)
{
    stage *s = *state;

    begin(s, true);
    s->players[2].digest = 8;
    show(s, 1);
    stage_until(s, "one", "failed");
    stage_job_says(s, "one", "reason", "finds other content in the files of round 1 (/in/a");
}

static void a_folder_that_cannot_be_listed_is_waited_for(void **state)
{
    stage *s = *state;

    begin(s, true);
    s->listing = WF_IO;
    stage_wait(s, 500);
    stage_job_says(s, "one", "rounds", "/in/* cannot be listed");
    s->listing = WF_OK;
    show(s, 1);
    stage_job_says(s, "one", "rounds", "\"waits_for\": \"\"");
    assert_int_equal(s->players[1].round, 1);
}

static void a_job_that_finds_no_file_fails(void **state)
{
    stage *s = *state;

    begin(s, true);
    stage_wait(s, WF_MODEL_IDLE_MS + 1000);
    stage_until(s, "one", "failed");
    stage_job_says(s, "one", "reason", "no file that matches /in/* has appeared in 3 s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGED(each_round_has_the_files_that_are_new),
        STAGED(a_worker_that_comes_between_two_rounds_is_told_of_none),
        STAGED(a_worker_that_comes_within_a_round_starts_with_its_files),
        STAGED(a_new_master_goes_on_with_the_round),
        STAGED(workers_that_find_other_content_are_told),
        STAGED(a_folder_that_cannot_be_listed_is_waited_for),
        STAGED(a_job_that_finds_no_file_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
