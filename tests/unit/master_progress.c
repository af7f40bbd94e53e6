/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/master_progress.c - signs of life that tell of progress, or of none. */
#include "master_stage.h"

#include "common/base/clock.h"
#include "common/wire/control.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { STUCK_MS = 20000 }; /* of the stage's master */

/* A sign of life comes outside the link, by a connection of its own. */
typedef struct beat {
    wf_stranger stranger;
    uint64_t incarnation;
    Weft__Beat body;
} beat;

/* A job whose workers stay at their splits, and the first one's beat. */
static void begin_with_beat(stage *s, beat *b)
{
    stage_begin_lazy(s);
    *b = (beat){.incarnation = s->players[1].incarnation};
    weft__beat__init(&b->body);
    wf_stranger_dial(&b->stranger, &s->nets, "master");
}

/* Beats twice a second; each tells of `growth` more progress. */
static void beat_for(stage *s, beat *b, int64_t ms, uint64_t growth)
{
    for (int64_t at = 0; at < ms; at += 100) {
        if (at % 500 == 0) {
            b->body.progress += growth;
            b->body.waits_ms += b->body.waits_role ? 500 : 0;
            wf_stranger_send(&b->stranger, WF_BEAT, b->incarnation, 0, &b->body.base);
        }
        stage_turn(s, 100);
    }
}

/* Its other thread sends signs of life all the time. */
static void a_main_thread_that_stands_still_is_given_up(void **state)
{
    stage *s = *state;
    beat b;

    begin_with_beat(s, &b);
    b.body.progress = 7;
    beat_for(s, &b, 2000, 1);
    s->players[1].absent = true;
    beat_for(s, &b, STUCK_MS - 1500, 0);
    assert_false(stage_count(s, "stood still"));
    beat_for(s, &b, 2500, 0);
    assert_true(stage_count(s, "its main thread has stood still for 20"));
    assert_true(stage_count(s, "\"restarting\""));
    wf_stranger_close(&b.stranger);
}

static void a_long_step_is_progress(void **state)
{
    stage *s = *state;
    beat b;

    begin_with_beat(s, &b);
    s->players[1].absent = true; /* it computes: its link is silent */
    beat_for(s, &b, 4 * STUCK_MS, 50);
    assert_false(stage_count(s, "\"restarting\""));
    wf_stranger_close(&b.stranger);
}

static void what_a_task_waits_for_is_shown_and_in_the_end_costs_it_its_place(void **state)
{
    stage *s = *state;
    beat b;

    begin_with_beat(s, &b);
    b.body.waits_role = WF_ROLE_PS;
    b.body.waits_for = "weights of step 12";
    for (int64_t at = 0; at < STUCK_MS / 2; at += 500)
        beat_for(s, &b, 500, 1);
    assert_true(stage_count(s, "weights of step 12"));
    assert_false(stage_count(s, "\"restarting\""));
    for (int64_t at = 0; at < STUCK_MS; at += 500)
        beat_for(s, &b, 500, 1);
    assert_true(stage_count(s, "it has waited for ps/0 for 2"));
    assert_true(stage_count(s, "\"restarting\""));
    wf_stranger_close(&b.stranger);
}

/* Staleness is bounded, and the ps says that it is a third one's step that both wait for. */
static void who_waits_for_a_slower_worker_keeps_its_place(void **state)
{
    stage *s = *state;
    beat b, of_ps;

    begin_with_beat(s, &b);
    of_ps = (beat){.incarnation = s->players[0].incarnation};
    weft__beat__init(&of_ps.body);
    wf_stranger_dial(&of_ps.stranger, &s->nets, "master");
    b.body.waits_role = WF_ROLE_PS;
    b.body.waits_for = "weights of step 12";
    of_ps.body.waits_role = WF_ROLE_WORKER;
    of_ps.body.waits_index = 1;
    of_ps.body.waits_for = "its step 9";
    for (int64_t at = 0; at < 2 * STUCK_MS; at += 1000) {
        beat_for(s, &b, 500, 1);
        beat_for(s, &of_ps, 500, 1);
    }
    assert_false(stage_count(s, "\"restarting\""));
    of_ps.body.waits_role = WF_ROLE_NONE; /* the worker's own word comes later */
    beat_for(s, &of_ps, 500, 1);
    beat_for(s, &b, 500, 1);
    assert_false(stage_count(s, "\"restarting\""));
    wf_stranger_close(&b.stranger);
    wf_stranger_close(&of_ps.stranger);
}

/* A ps that takes a set-up and never answers. */
static void what_the_master_waits_for_is_shown_and_asked_for_again(void **state)
{
    stage *s = *state;

    stage_cast(s);
    stage_wait(s, 500);
    s->players[0].silent = true;
    stage_do(s, "submit", "one");
    stage_wait(s, 5000);
    assert_true(stage_count(s, "its set-up for generation 1 of job one"));
    s->players[0].silent = false; /* it lost that message, and would never answer it */
    for (int k = 0; k < 350 && !stage_count(s, "\"running\""); k++)
        stage_turn(s, 100);
    assert_true(stage_count(s, "\"running\""));
}

static double elapsed_s(stage *s)
{
    char *text = wf_master_status(s->master, s->now_ns);
    json_t *o = json_loads(text, 0, NULL);
    double out = json_number_value(
        json_object_get(json_array_get(json_object_get(o, "jobs"), 0), "elapsed_s"));

    json_decref(o);
    free(text);
    return out;
}

/* Neither while it is over, nor while the master is away; nor does it begin anew then. */
static void a_job_takes_time_while_it_trains(void **state)
{
    stage *s = stage_new();
    double took;

    (void)state;
    s->model.evaluates = true;
    stage_begin_lazy(s);
    stage_wait(s, 3000);
    stage_let_all_train(s);
    stage_until(s, "one", "done");
    took = elapsed_s(s);
    assert_true(took >= 3);
    stage_wait(s, 60000);
    assert_true(elapsed_s(s) == took);
    stage_kill(s);
    stage_raise(s);
    assert_true(elapsed_s(s) > 0 && elapsed_s(s) <= took);
    stage_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_takes_time_while_it_trains),
        STAGED(a_main_thread_that_stands_still_is_given_up),
        STAGED(a_long_step_is_progress),
        STAGED(what_a_task_waits_for_is_shown_and_in_the_end_costs_it_its_place),
        STAGED(who_waits_for_a_slower_worker_keeps_its_place),
        STAGED(what_the_master_waits_for_is_shown_and_asked_for_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
