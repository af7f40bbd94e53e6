/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/master_placement.c - slices move from a ps with more traffic, one at a time, and never
 * beside a checkpoint. Both ps are played; all slices lie on ps 0 at first. */
#include "common/wire/control.h"
#include "master/job/job.h"
#include "master/placement/placement.h"
#include "master_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SLICES = 4 /* that ps 0 tells of */ };

typedef struct cast {
    stage *s;
    stage_player *ps[2], *worker;
} cast;

static int begin(void **state)
{
    cast *c = calloc(1, sizeof *c);
    stage *s = stage_new();

    assert_non_null(c);
    stage_kill(s);
    s->two_ps = true;
    s->model.ps = 2;
    s->model.balances = true;
    stage_raise(s);
    stage_cast(s);
    c->s = s;
    c->ps[0] = &s->players[0];
    c->worker = &s->players[1];
    c->ps[1] = stage_enter(s, WF_ROLE_PS, 1, 77);
    s->players[1].lazy = s->players[2].lazy = true;
    stage_submit(s, "one", "ledger");
    stage_until(s, "one", "running");
    stage_turn(s, 20);
    *state = c;
    return 0;
}

static int end(void **state)
{
    cast *c = *state;

    stage_free(&c->s);
    free(c);
    return 0;
}

/* A second's report: ps 0 has `each` bytes of each of its slices, the other one slice with so much.
 */
static void tell_of(cast *c, uint32_t ps, uint64_t each)
{
    Weft__SliceLoad rows[SLICES], *list[SLICES];
    Weft__Load body = WEFT__LOAD__INIT;

    body.time_ns = 1000000000;
    for (uint32_t k = 0; k < (ps ? 1 : SLICES); k++) {
        weft__slice_load__init(&rows[k]);
        rows[k].slice = ps ? 99 : k; /* one that there is not */
        rows[k].pulled_bytes = each;
        rows[k].held_bytes = 100;
        list[body.n_most++] = &rows[k];
        body.pulled_bytes += each;
        body.held_bytes += 100;
    }
    body.most = list;
    stage_say(c->ps[ps], WF_LOAD, &body.base);
}

static void tell(cast *c, uint64_t each)
{
    tell_of(c, 0, each);
    tell_of(c, 1, each);
}

static void tell_for(cast *c, int64_t ms)
{
    for (; ms > 0; ms -= 100) {
        tell(c, 1000);
        stage_turn(c->s, 100);
    }
}

static void answer(cast *c, wf_status status)
{
    Weft__Moved body = WEFT__MOVED__INIT;

    body.slice = c->ps[0]->move_slice;
    body.version = c->ps[0]->move_version;
    body.ps = c->ps[0]->move_to;
    body.status = status;
    body.what = (char *)(status ? "no room" : "");
    body.frozen_ns = 2000000;
    stage_say(c->ps[0], WF_MOVED, &body.base);
    stage_turn(c->s, 20);
}

static uint32_t orders(const cast *c)
{
    assert_int_equal(c->ps[1]->heard[WF_MOVE], 0);
    return c->ps[0]->heard[WF_MOVE];
}

static void one_slice_after_the_other_moves_once_the_load_was_uneven_for_some_time(void **state)
{
    cast *c = *state;
    uint32_t version;

    tell(c, 1000);
    stage_turn(c->s, 60);
    assert_int_equal(orders(c), 0); /* it may pass */
    tell_for(c, 300);
    assert_int_equal(orders(c), 1);
    assert_int_equal(c->ps[0]->move_to, 1);
    assert_int_equal(c->ps[0]->move_slice, 0); /* of equal ones the first */
    version = c->ps[0]->move_version;
    tell_for(c, 2000);
    assert_int_equal(orders(c), 1); /* L1 */
    answer(c, WF_OK);
    assert_int_equal(orders(c), 1); /* a rest */
    stage_turn(c->s, 300);
    stage_turn(c->s, 100); /* as the loads are to be now: three against two */
    assert_int_equal(orders(c), 1);
    tell_for(c, 200); /* but they tell otherwise */
    assert_int_equal(orders(c), 2);
    assert_int_equal(c->ps[0]->move_version, version + 2); /* L2 */
    assert_int_not_equal(c->ps[0]->move_slice, 0);         /* that is on the other now */
}

static void a_load_that_is_even_or_old_moves_nothing(void **state)
{
    cast *c = *state;

    tell(c, 0);
    stage_turn(c->s, 300);
    tell(c, 0);
    stage_turn(c->s, 300);
    assert_int_equal(orders(c), 0);
    tell(c, 1000);
    stage_turn(c->s, 6000); /* nobody has told since */
    stage_turn(c->s, 100);
    assert_int_equal(orders(c), 0);
}

/* Of a step that takes longer than reports are apart, ps tell one after the other, and most reports
 * are of nothing. */
static void steps_that_are_rare_are_even(void **state)
{
    cast *c = *state;

    for (int step = 0; step < 10; step++) {
        tell_of(c, 0, 1000);
        stage_turn(c->s, 60);
        tell_of(c, 1, 4000);
        tell_of(c, 0, 0);
        stage_turn(c->s, 60);
        tell_of(c, 1, 0);
        stage_wait(c->s, 1000);
    }
    assert_int_equal(orders(c), 0);
}

static bool is_shown_hot(cast *c, uint32_t ps)
{
    json_t *o = wf_placement_json(c->s->master, wf_job_find(c->s->master, "one"));
    const json_t *row = json_array_get(json_object_get(o, "ps"), ps);
    bool hot = json_is_true(json_object_get(row, "hot"));

    assert_non_null(row);
    json_decref(o);
    return hot;
}

static void no_ps_is_called_hot_before_all_have_told(void **state)
{
    cast *c = *state;

    tell_of(c, 1, 1000);
    stage_turn(c->s, 20);
    assert_false(is_shown_hot(c, 1));
    tell_of(c, 0, 1000);
    stage_turn(c->s, 20);
    assert_true(is_shown_hot(c, 0));
    assert_false(is_shown_hot(c, 1));
}

static void a_refused_slice_is_left_alone_and_the_others_for_a_while(void **state)
{
    cast *c = *state;

    tell_for(c, 300);
    assert_int_equal(orders(c), 1);
    answer(c, WF_FULL);
    stage_job_says(c->s, "one", "events", "stays on ps/0");
    stage_job_says(c->s, "one", "events", "no room");
    tell_for(c, 4500);
    assert_int_equal(orders(c), 1);
    tell_for(c, 1500);
    assert_int_equal(orders(c), 2);
    assert_int_not_equal(c->ps[0]->move_slice, 0);
    answer(c, WF_FULL);
    tell_for(c, 9000); /* twice as long */
    assert_int_equal(orders(c), 2);
    tell_for(c, 2000);
    assert_int_equal(orders(c), 3);
}

static void no_slice_moves_beside_a_checkpoint(void **state)
{
    cast *c = *state;

    stage_say(c->worker, WF_CUT_DUE, NULL);
    stage_turn(c->s, 20);
    assert_int_equal(c->worker->heard[WF_CUT_OPEN], 1);
    tell_for(c, 1000);
    assert_int_equal(orders(c), 0);
}

static void no_checkpoint_begins_while_a_slice_moves(void **state)
{
    cast *c = *state;

    tell_for(c, 300);
    assert_int_equal(orders(c), 1);
    stage_say(c->worker, WF_CUT_DUE, NULL);
    stage_turn(c->s, 500);
    assert_int_equal(c->worker->heard[WF_CUT_OPEN], 0);
    answer(c, WF_OK);
    stage_turn(c->s, 20);
    assert_int_equal(c->worker->heard[WF_CUT_OPEN], 1);
}

static void an_order_that_was_lost_with_the_link_comes_again(void **state)
{
    cast *c = *state;
    stage_player *p = c->ps[0];
    Weft__Register body = WEFT__REGISTER__INIT;
    uint32_t version;

    tell_for(c, 300);
    version = p->move_version;
    body.job = p->job_name;
    body.job_id = p->job_id;
    body.generation = p->generation;
    body.view = p->view;
    body.ready = true;
    stage_say(p, WF_REGISTER, &body.base);
    stage_turn(c->s, 20);
    assert_int_equal(orders(c), 2);
    assert_int_equal(p->move_version, version);
    answer(c, WF_OK);
    answer(c, WF_OK); /* to the second order */
}

static void a_master_that_starts_again_gives_no_version_twice(void **state)
{
    cast *c = *state;
    stage_player *p = c->ps[0];
    Weft__Register body = WEFT__REGISTER__INIT;
    Weft__MapChange row = WEFT__MAP_CHANGE__INIT, *rows[] = {&row};

    body.job = p->job_name;
    body.job_id = p->job_id;
    body.generation = p->generation;
    body.view = p->view;
    body.ready = true;
    body.map = 41;
    row.slice = 3;
    row.version = 40;
    body.moved = rows;
    body.n_moved = 1;
    stage_say(p, WF_REGISTER, &body.base);
    stage_turn(c->s, 20);
    tell_for(c, 300);
    assert_int_equal(orders(c), 1);
    assert_int_equal(p->move_version, 42);
}

static void a_ps_that_dies_ends_the_move_with_the_generation(void **state)
{
    cast *c = *state;

    tell_for(c, 300);
    assert_int_equal(orders(c), 1);
    stage_leave(c->ps[1]);
    stage_wait(c->s, 6000);
    c->ps[1] = stage_enter(c->s, WF_ROLE_PS, 1, 78);
    stage_until(c->s, "one", "running");
    stage_wait(c->s, 200);
    assert_int_equal(orders(c), 1);
    tell_for(c, 300);
    assert_int_equal(orders(c), 2);
}

static void what_a_person_asks_for_is_checked(void **state)
{
    cast *c = *state;
    Weft__Ask ask = stage_ask_of("move", "one");

    ask.variable = "steps";
    ask.ps = 1;
    ask.slice = 9;
    stage_refused(c->s, &ask, WF_NOTFOUND, "has 4 slices, from [0] to [3]");
    ask.slice = 1;
    ask.ps = 2;
    stage_refused(c->s, &ask, WF_USAGE, "there is no ps/2");
    ask.ps = 0;
    stage_refused(c->s, &ask, WF_INVALID, "is on ps/0 already");
    ask.variable = "step";
    stage_refused(c->s, &ask, WF_NOTFOUND, "holds a variable \"step\"");
    ask.variable = "steps";
    ask.ps = 1;
    assert_int_equal(stage_ask(c->s, &ask)->status, WF_OK);
    stage_turn(c->s, 20);
    assert_int_equal(orders(c), 1);
    assert_int_equal(c->ps[0]->move_slice, 1);
    ask.slice = 2;
    stage_refused(c->s, &ask, WF_AGAIN, "slice 1 is on its way from ps/0 to ps/1");
    answer(c, WF_OK);
    stage_job_says(c->s, "one", "events", "[1] is on ps/1 now");
}

#define PLAYED(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAYED(one_slice_after_the_other_moves_once_the_load_was_uneven_for_some_time),
        PLAYED(a_load_that_is_even_or_old_moves_nothing),
        PLAYED(steps_that_are_rare_are_even),
        PLAYED(no_ps_is_called_hot_before_all_have_told),
        PLAYED(a_refused_slice_is_left_alone_and_the_others_for_a_while),
        PLAYED(no_slice_moves_beside_a_checkpoint),
        PLAYED(no_checkpoint_begins_while_a_slice_moves),
        PLAYED(an_order_that_was_lost_with_the_link_comes_again),
        PLAYED(a_master_that_starts_again_gives_no_version_twice),
        PLAYED(a_ps_that_dies_ends_the_move_with_the_generation),
        PLAYED(what_a_person_asks_for_is_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
