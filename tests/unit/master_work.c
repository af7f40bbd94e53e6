/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/master_work.c - what takes long is done beside the master's loop: questions, hellos
 * and pings go on, nothing leaves before it is on disk, and a result that comes too late is
 * dropped. */
#include "common/base/size.h"
#include "master_stage.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static stage *begin_stage(bool holds_syncs, bool holds_slow)
{
    stage *s = stage_new();

    stage_kill(s);
    s->holds_syncs = holds_syncs;
    s->holds_slow = holds_slow;
    stage_raise(s);
    assert_int_equal(s->rc, WF_OK);
    stage_cast(s);
    return s;
}

static void finish_syncs(stage *s)
{
    while (s->sync)
        stage_finish(s, &s->sync);
}

static uint32_t lost(stage *s)
{
    return stage_count(s, "nothing heard");
}

/* Longer than any member may be silent. */
static void a_compilation_holds_nobody_up(void **state)
{
    Weft__Ask status = stage_ask_of("status", "");
    stage *s = begin_stage(false, true);

    (void)state;
    stage_submit(s, "one", "ledger");
    stage_wait(s, 20000);
    assert_string_equal(wf_master_job_state(s->master, "one"), "compiling");
    assert_int_equal(s->compiles, 0);
    assert_non_null(stage_ask(s, &status));
    assert_int_equal(lost(s), 0);
    stage_finish(s, &s->slow); /* then the first values are written */
    assert_string_equal(wf_master_job_state(s->master, "one"), "waiting");
    stage_wait(s, 20000);
    assert_int_equal(s->players[0].heard[WF_SETUP], 0);
    assert_int_equal(lost(s), 0);
    stage_finish(s, &s->slow);
    stage_until(s, "one", "done");
    assert_int_equal(s->compiles, 1);
    stage_free(&s);
}

static void what_was_compiled_for_a_stopped_job_is_dropped(void **state)
{
    stage *s = begin_stage(false, true);

    (void)state;
    stage_submit(s, "one", "ledger");
    stage_turn(s, 20);
    stage_do(s, "stop", "one");
    stage_until(s, "one", "stopped");
    stage_finish(s, &s->slow);
    assert_string_equal(wf_master_job_state(s->master, "one"), "stopped");
    stage_do(s, "recover", "one");
    stage_turn(s, 20);
    stage_finish(s, &s->slow);
    stage_finish(s, &s->slow);
    stage_until(s, "one", "done");
    assert_int_equal(s->compiles, 2);
    stage_free(&s);
}

/* What the restore found is void once a ps has died: it may have died of it. */
static void a_generation_begins_with_who_is_there(void **state)
{
    stage *s = begin_stage(false, true);
    stage_player *ps;

    (void)state;
    stage_submit(s, "one", "ledger");
    stage_turn(s, 20);
    stage_finish(s, &s->slow);
    stage_leave(&s->players[0]);
    stage_wait(s, 6000);
    stage_finish(s, &s->slow);
    assert_string_equal(wf_master_job_state(s->master, "one"), "waiting");
    assert_null(s->slow);
    ps = stage_enter(s, WF_ROLE_PS, 0, 11);
    stage_turn(s, 20);
    stage_finish(s, &s->slow);
    assert_int_equal(ps->heard[WF_SETUP], 1);
    stage_until(s, "one", "done");
    stage_free(&s);
}

static void run_with_syncs(stage *s, const char *job, const char *state)
{
    for (int i = 0; i < 200 && strcmp(wf_master_job_state(s->master, job), state); i++) {
        if (s->sync)
            stage_finish(s, &s->sync);
        else
            stage_turn(s, 20);
    }
    assert_string_equal(wf_master_job_state(s->master, job), state);
}

static void nothing_leaves_before_its_sync(void **state)
{
    Weft__Ask submit = stage_ask_of("submit", "one");
    stage *s = begin_stage(true, false);

    (void)state;
    stage_wait(s, 20000); /* a disk that hangs is no death */
    assert_int_equal(lost(s), 0);
    assert_int_equal(s->players[0].heard[WF_VIEW], 0);
    finish_syncs(s);
    assert_int_equal(s->players[0].heard[WF_VIEW], 1);
    assert_null(stage_ask(s, &submit));
    assert_int_equal(s->note[0], 0);
    stage_finish(s, &s->sync);
    assert_true(s->players[3].answered);
    assert_int_equal(s->players[3].answer.status, WF_OK);
    run_with_syncs(s, "one", "done");
    stage_free(&s);
}

/* Else a master that starts anew would go on with the generation, and the worker begin in it again:
 * with steps that the ps take for those that they have seen. */
static void who_is_halted_is_so_after_any_start_of_the_master(void **state)
{
    static const wf_status whys[] = {WF_IO, WF_NUMERIC};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(whys); i++) {
        stage *s = begin_stage(true, false);
        Weft__Fault body = WEFT__FAULT__INIT;

        s->players[1].lazy = s->players[2].lazy = true;
        stage_submit(s, "one", "ledger");
        run_with_syncs(s, "one", "running");
        finish_syncs(s);
        body.status = whys[i];
        body.what = (char *)"it fails";
        for (uint32_t p = 1; p <= 2; p++) /* who is the last makes it the job's fault */
            stage_say(&s->players[p], WF_FAULT, &body.base);
        stage_turn(s, 0);
        assert_string_equal(wf_master_job_state(s->master, "one"), "failed");
        for (uint32_t p = 0; p <= 2; p++)
            assert_int_equal(s->players[p].heard[WF_HALT], 0);
        finish_syncs(s);
        stage_turn(s, 0);
        assert_int_equal(s->players[0].heard[WF_HALT], 1);
        stage_free(&s);
    }
}

static void a_sync_that_fails_ends_the_master_and_nothing_was_said(void **state)
{
    Weft__Ask submit = stage_ask_of("submit", "one");
    stage *s = begin_stage(true, false);

    (void)state;
    finish_syncs(s);
    assert_null(stage_ask(s, &submit));
    wf_memdisk_fail(s->disk, 1, EIO, false);
    stage_finish(s, &s->sync);
    assert_int_equal(s->rc, WF_IO);
    assert_false(s->players[3].answered);
    stage_free(&s);
}

/* The link is gone with what waited for it. */
static void what_waits_for_a_peer_that_went_is_dropped(void **state)
{
    Weft__Ask submit = stage_ask_of("submit", "one"), status = stage_ask_of("status", "");
    stage *s = begin_stage(true, false);

    (void)state;
    finish_syncs(s);
    assert_null(stage_ask(s, &submit));
    stage_leave(&s->players[3]);
    stage_wait(s, 3000);
    finish_syncs(s);
    stage_enter(s, WF_ROLE_CLIENT, 0, 31);
    s->players[3] = s->players[4];
    s->n_players = 4;
    stage_turn(s, 20);
    assert_non_null(stage_ask(s, &status));
    stage_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_compilation_holds_nobody_up),
        cmocka_unit_test(what_was_compiled_for_a_stopped_job_is_dropped),
        cmocka_unit_test(a_generation_begins_with_who_is_there),
        cmocka_unit_test(nothing_leaves_before_its_sync),
        cmocka_unit_test(who_is_halted_is_so_after_any_start_of_the_master),
        cmocka_unit_test(a_sync_that_fails_ends_the_master_and_nothing_was_said),
        cmocka_unit_test(what_waits_for_a_peer_that_went_is_dropped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
