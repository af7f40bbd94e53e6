/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/master_watch.c - who is silent is given up, but not for the master's own absence. */
#include "master_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { DEAD_MS = 5000 }; /* of the stage's master */

static uint32_t lost(stage *s)
{
    return stage_count(s, "\"restarting\"");
}

static void who_is_silent_is_given_up(void **state)
{
    stage *s = *state;

    stage_cast(s);
    stage_wait(s, 1000);
    stage_leave(&s->players[1]);
    stage_wait(s, DEAD_MS - 500);
    assert_int_equal(lost(s), 0);
    stage_wait(s, 1000);
    assert_int_equal(lost(s), 1);
}

/* The process was stopped. It takes its turn before it has read what came meanwhile. */
static void nobody_is_given_up_for_the_masters_absence(void **state)
{
    stage *s = *state;

    stage_cast(s);
    stage_wait(s, 1000);
    s->now_ns += 8 * INT64_C(1000000000);
    assert_int_equal(wf_master_advance(s->master, s->now_ns, NULL), WF_OK);
    assert_int_equal(lost(s), 0);
    for (int i = 0; i < 3; i++)
        s->players[i].absent = true; /* and half of the time passes before anything is read */
    stage_wait(s, DEAD_MS / 2);
    assert_int_equal(lost(s), 0);
    for (int i = 0; i < 3; i++)
        s->players[i].absent = false;
    stage_wait(s, 2 * DEAD_MS);
    assert_int_equal(lost(s), 0);
}

/* A member that died meanwhile has its time from the master's return. */
static void who_died_meanwhile_is_given_up_later(void **state)
{
    stage *s = *state;

    stage_cast(s);
    stage_wait(s, 1000);
    stage_leave(&s->players[1]);
    s->now_ns += 8 * INT64_C(1000000000);
    stage_wait(s, DEAD_MS - 500);
    assert_int_equal(lost(s), 0);
    stage_wait(s, 1500);
    assert_int_equal(lost(s), 1);
}

/* A second away out of every four: the dead are found all the same. */
static void absences_again_and_again_protect_nobody_for_ever(void **state)
{
    stage *s = *state;

    stage_cast(s);
    stage_wait(s, 1000);
    stage_leave(&s->players[1]);
    for (int i = 0; i < 6 * DEAD_MS && lost(s) == 0; i += 4000) {
        stage_wait(s, 3000);
        s->now_ns += INT64_C(1100000000);
    }
    assert_int_equal(lost(s), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGED(who_is_silent_is_given_up),
        STAGED(nobody_is_given_up_for_the_masters_absence),
        STAGED(who_died_meanwhile_is_given_up_later),
        STAGED(absences_again_and_again_protect_nobody_for_ever),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
