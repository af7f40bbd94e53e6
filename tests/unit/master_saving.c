/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/master_saving.c - checkpoints that are due by the clock. */
#include "common/wire/control.h"
#include "master_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { EVERY_S = 4 };

static void begin(stage *s)
{
    s->model.every_seconds = EVERY_S;
    stage_begin_lazy(s);
}

/* A worker has made so many steps in all. */
static void make_steps(stage_player *p, uint64_t steps)
{
    Weft__Progress body = WEFT__PROGRESS__INIT;

    body.steps = steps;
    stage_say(p, WF_PROGRESS, &body.base);
}

static void a_checkpoint_is_made_when_its_time_has_come(void **state)
{
    stage *s = *state;

    begin(s);
    make_steps(&s->players[1], 3);
    stage_wait(s, EVERY_S * 1000 - 1000);
    assert_int_equal(s->players[1].heard[WF_CUT_OPEN], 0);
    stage_wait(s, 1500);
    for (int i = 1; i <= 2; i++)
        assert_int_equal(s->players[i].heard[WF_CUT_OPEN], 1);
}

/* Nothing was trained since the generation began: the same weights are saved already. */
static void without_a_step_none_is_made(void **state)
{
    stage *s = *state;

    begin(s);
    stage_wait(s, 5 * EVERY_S * 1000);
    assert_int_equal(s->players[1].heard[WF_CUT_OPEN], 0);
    make_steps(&s->players[2], 1);
    stage_wait(s, 200);
    assert_int_equal(s->players[1].heard[WF_CUT_OPEN], 1);
}

/* A master that begins anew counts from its beginning: it neither saves at once nor forgets to. */
static void a_new_master_counts_anew(void **state)
{
    stage *s = *state;

    begin(s);
    make_steps(&s->players[1], 3);
    stage_wait(s, EVERY_S * 500);
    stage_kill(s);
    stage_raise(s);
    stage_until(s, "one", "running");
    make_steps(&s->players[1], 4);
    stage_wait(s, EVERY_S * 500);
    assert_int_equal(s->players[1].heard[WF_CUT_OPEN], 0);
    stage_wait(s, EVERY_S * 700);
    assert_int_equal(s->players[1].heard[WF_CUT_OPEN], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGED(a_checkpoint_is_made_when_its_time_has_come),
        STAGED(without_a_step_none_is_made),
        STAGED(a_new_master_counts_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
