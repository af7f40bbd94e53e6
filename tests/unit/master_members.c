/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/master_members.c - who has a task's place: who comes in, comes twice, was away, or
 * holds the job of another time; and what members are told of each other. */
#include "common/wire/control.h"
#include "master_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Long enough that the master's end of the link is forgotten, and not its life. */
static void let_it_be_away(stage *s, stage_player *p)
{
    p->absent = true;
    stage_wait(s, 1200);
    p->absent = false;
    stage_wait(s, 500);
}

/* One hello dismissed a task: now the process in place is looked at first. */
static void a_place_that_is_held_and_answered_for_is_not_given_away(void **state)
{
    stage *s = *state;
    uint32_t view;

    stage_begin_lazy(s);
    view = wf_master_view(s->master);
    stage_enter(s, WF_ROLE_WORKER, 0, 25);
    stage_enter(s, WF_ROLE_PS, 0, 26);
    stage_wait(s, 8000);
    for (int i = 0; i < 2; i++)
        assert_int_equal(s->players[i].heard[WF_DISMISS], 0);
    for (int i = 4; i < 6; i++) {
        assert_int_equal(s->players[i].heard[WF_VIEW] + s->players[i].heard[WF_START], 0);
        assert_int_equal(s->players[i].refused.status, WF_OK); /* it may ask again */
    }
    assert_int_equal(wf_master_view(s->master), view);
    stage_let_all_train(s);
    stage_until(s, "one", "done");
}

static void a_newer_process_takes_the_place_and_the_older_one_never_comes_back(void **state)
{
    stage *s = *state;
    uint32_t view;

    stage_begin_lazy(s);
    s->players[1].absent = true;
    stage_enter(s, WF_ROLE_WORKER, 0, 25);
    stage_wait(s, 3000); /* less than silence takes */
    assert_int_equal(s->players[4].heard[WF_START], 1);
    view = wf_master_view(s->master);
    let_it_be_away(s, &s->players[1]);
    assert_int_equal(s->players[1].heard[WF_DISMISS], 1);
    assert_int_equal(s->players[1].dismissed_how, WF_DISMISS_SUPERSEDED);
    assert_int_equal(s->players[1].heard[WF_START], 1);
    assert_int_equal(wf_master_view(s->master), view);
    stage_let_all_train(s);
    stage_until(s, "one", "done");
}

/* So many incarnations later that no list of them remembers. What it knows of its job is void. */
static void who_was_given_up_long_ago_never_comes_back(void **state)
{
    enum { LATER = 300 };
    stage *s = *state;
    stage_player *old, *p = NULL;
    uint32_t view;

    stage_begin_lazy(s);
    old = &s->players[1];
    old->absent = true;
    for (uint64_t i = 0; i < LATER; i++) {
        if (p) {
            stage_leave(p);
            s->n_players--;
        }
        p = stage_enter(s, WF_ROLE_WORKER, 0, 1000 + i);
        for (int k = 0; k < 100 && !p->heard[WF_START]; k++)
            stage_turn(s, 100);
        assert_int_equal(p->heard[WF_START], 1);
    }
    stage_leave(p);
    view = wf_master_view(s->master);
    old->absent = false;
    for (int k = 0; k < 100 && old->heard[WF_DISMISS] < 1; k++)
        stage_turn(s, 100);
    assert_int_equal(old->heard[WF_DISMISS], 1);
    assert_int_equal(old->dismissed_how, WF_DISMISS_RESTART);
    assert_int_equal(old->heard[WF_START], 1);
    assert_in_range(wf_master_view(s->master), view, view + 1); /* without the one that left */
}

static void who_says_hello_again_is_still_one_member(void **state)
{
    stage *s = *state;
    uint32_t view;

    stage_begin_lazy(s);
    view = wf_master_view(s->master);
    let_it_be_away(s, &s->players[1]);
    assert_int_equal(s->players[1].heard[WF_DISMISS], 0);
    assert_int_equal(s->players[1].heard[WF_START], 1); /* it said that it holds the job */
    assert_int_equal(wf_master_view(s->master), view);
    stage_let_all_train(s);
    stage_until(s, "one", "done");
}

static void what_it_registers_twice_counts_once(void **state)
{
    stage *s = *state;
    Weft__Register body = WEFT__REGISTER__INIT;
    wf_msg *m;

    stage_begin_lazy(s);
    body.job = "one";
    body.job_id = s->players[0].job_id;
    body.generation = s->players[0].generation;
    body.ready = true;
    stage_say(&s->players[0], WF_REGISTER, &body.base);
    stage_turn(s, 0); /* a ps is told the view again: that is one more */
    m = stage_message(&s->players[1], WF_REGISTER);
    body.train_records = STAGE_RECORDS;
    body.eval_records = 8;
    assert_int_equal(wf_control_put(m, &body.base, NULL), WF_OK);
    stage_changes_nothing(s, &s->players[1], &m);
    assert_string_equal(wf_master_job_state(s->master, "one"), "running");
}

static void a_task_that_is_not_in_the_file_is_told_so(void **state)
{
    stage *s = *state;
    char *before;
    stage_player *p;

    stage_begin_lazy(s);
    before = stage_picture(s);
    p = stage_enter(s, WF_ROLE_WORKER, 7, 70);
    stage_turn(s, 0);
    assert_string_equal(p->refused.what, "worker/7 is not in the master's cluster.yaml");
    assert_string_equal(p->refused.hint, "use the same cluster.yaml for all tasks");
    stage_still_shows(s, before);
}

static void who_holds_a_job_that_is_over_lets_go_of_it(void **state)
{
    stage *s = *state;
    Weft__Register body = WEFT__REGISTER__INIT;
    uint32_t halts;

    stage_begin_lazy(s);
    halts = s->players[2].heard[WF_HALT];
    body.job = "another";
    body.generation = 3;
    body.ready = true;
    stage_say(&s->players[2], WF_REGISTER, &body.base);
    stage_turn(s, 0);
    assert_int_equal(s->players[2].heard[WF_HALT], halts + 1);
}

/* A ps that outlived a state folder which was wiped: its job has the name, the number and the
 * generation of the one that was submitted since. */
static void a_job_of_the_same_name_in_a_wiped_folder_is_another(void **state)
{
    stage *s = *state;
    Weft__Register body = WEFT__REGISTER__INIT;
    uint32_t setups;

    stage_begin_lazy(s);
    setups = s->players[0].heard[WF_SETUP];
    body.job = "one";
    body.job_id = s->players[0].job_id + 1;
    body.generation = s->players[0].generation;
    body.ready = true;
    stage_say(&s->players[0], WF_REGISTER, &body.base);
    stage_wait(s, 500);
    assert_int_equal(s->players[0].heard[WF_HALT], 1);
    assert_int_equal(s->players[0].heard[WF_SETUP], setups + 1);
}

/* The worker holds on, and is told again: nobody trains on while a checkpoint is being made. */
static void a_link_that_breaks_during_a_hold_neither_ends_nor_repeats_the_checkpoint(void **state)
{
    stage *s = *state;

    stage_begin_lazy(s);
    stage_do(s, "stop", "one");
    stage_wait(s, 200);
    assert_int_equal(s->players[2].heard[WF_CUT_OPEN], 1);
    let_it_be_away(s, &s->players[2]); /* not the chief */
    assert_int_equal(s->players[2].heard[WF_CUT_OPEN], 2);
    assert_int_equal(s->players[1].heard[WF_CUT_OPEN], 1);
    for (int i = 1; i <= 2; i++)
        assert_int_equal(s->players[i].heard[WF_CUT_RESUME] + s->players[i].heard[WF_CUT_ABORT], 0);
}

/* What the chief has said meanwhile is read before its time is up. */
static void a_checkpoint_is_not_given_up_for_the_masters_absence(void **state)
{
    stage *s = *state;

    stage_begin_lazy(s);
    stage_do(s, "stop", "one");
    stage_wait(s, 200);
    assert_int_equal(s->players[1].heard[WF_CUT_OPEN], 1);
    s->now_ns += INT64_C(8000000000);
    assert_int_equal(wf_master_advance(s->master, s->now_ns, NULL), WF_OK);
    stage_wait(s, 1000);
    for (int i = 1; i <= 2; i++)
        assert_int_equal(s->players[i].heard[WF_CUT_ABORT] + s->players[i].heard[WF_DISMISS], 0);
    stage_let_all_train(s);
    stage_until(s, "one", "stopped");
}

static void a_ps_is_told_what_has_changed_and_a_new_one_all(void **state)
{
    stage *s = *state;

    stage_begin_lazy(s);
    assert_int_equal(wf_master_view(s->master), s->players[0].view);
    s->players[2].absent = true; /* and another process takes its place */
    stage_enter(s, WF_ROLE_WORKER, 1, 35);
    stage_wait(s, 3000);
    assert_int_equal(s->players[4].heard[WF_START], 1);
    assert_int_equal(s->players[0].view, wf_master_view(s->master));
    assert_int_equal(s->players[0].view_since, s->players[0].view - 1);
    assert_int_equal(s->players[0].view_members, 1);
    assert_int_equal(s->players[0].view_left, 0); /* in the view before */
    let_it_be_away(s, &s->players[0]); /* its link is forgotten: what it has is not known */
    assert_int_equal(s->players[0].view_since, 0);
    assert_int_equal(s->players[0].view_members, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGED(a_place_that_is_held_and_answered_for_is_not_given_away),
        STAGED(a_job_of_the_same_name_in_a_wiped_folder_is_another),
        STAGED(a_link_that_breaks_during_a_hold_neither_ends_nor_repeats_the_checkpoint),
        STAGED(a_checkpoint_is_not_given_up_for_the_masters_absence),
        STAGED(a_ps_is_told_what_has_changed_and_a_new_one_all),
        STAGED(a_newer_process_takes_the_place_and_the_older_one_never_comes_back),
        STAGED(who_was_given_up_long_ago_never_comes_back),
        STAGED(who_says_hello_again_is_still_one_member),
        STAGED(what_it_registers_twice_counts_once),
        STAGED(a_task_that_is_not_in_the_file_is_told_so),
        STAGED(who_holds_a_job_that_is_over_lets_go_of_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
