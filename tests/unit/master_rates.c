/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/master_rates.c - whoever applies updates is told another learning rate between two
 * epochs. */
#include "master/epoch/epoch.h"
#include "master/job/job.h"
#include "master_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* As a callback does at an epoch's end. */
static void choose_rate(stage *s, double rate)
{
    wf_job_find(s->master, "one")->epoch->callbacks.rate = rate;
}

/* Soon: much later the master would ask whoever owes it something again. */
static void until_told(stage *s, const stage_player *ps, uint32_t times)
{
    for (int i = 0; i < 100 && ps->heard[WF_TUNE] < times; i++)
        stage_turn(s, 20);
    assert_int_equal(ps->heard[WF_TUNE], times);
}

static void die(stage *s, stage_player *ps)
{
    Weft__Died body = WEFT__DIED__INIT;

    body.role = ps->task.role;
    body.index = ps->task.index;
    body.pid = ps->incarnation;
    body.reason = (char *)"killed by signal 9";
    body.session = (char *)s->session;
    stage_leave(ps);
    stage_say(&s->players[3], WF_DIED, &body.base);
    stage_turn(s, 20);
}

/* The first ps owes an answer when the second one dies. In the next generation both have the rate
 * from their set-up, and the one after that is told as if nothing had been owed. */
static void an_answer_that_a_stopped_generation_owes_is_not_waited_for(void **state)
{
    stage *s = stage_new();
    stage_player *ps[2];

    (void)state;
    stage_kill(s);
    s->two_ps = true;
    s->model.ps = 2;
    s->model.epochs = 1000;
    stage_raise(s);
    stage_cast(s);
    ps[0] = &s->players[0];
    ps[1] = stage_enter(s, WF_ROLE_PS, 1, 77);
    stage_submit(s, "one", "ledger");
    stage_until(s, "one", "running");
    ps[0]->untuned = true;
    choose_rate(s, 0.5);
    until_told(s, ps[0], 1);
    die(s, ps[1]);
    ps[0]->untuned = false;
    stage_enter(s, WF_ROLE_PS, 1, 78);
    stage_until(s, "one", "running");
    choose_rate(s, 0.25);
    until_told(s, ps[0], 2);
    stage_wait(s, 1000);
    assert_int_equal(ps[0]->heard[WF_TUNE], 2); /* it has answered */
    stage_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_that_a_stopped_generation_owes_is_not_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
