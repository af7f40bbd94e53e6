/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/master_losses.c - what the master tells of tasks that were lost, came back, or were
 * refused, and what a loss has cost. */
#include "master_stage.h"

#include "common/base/histogram.h"
#include "common/wire/control.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

static json_t *task_of(stage *s, const char *name)
{
    char *text = wf_master_status(s->master, s->now_ns);
    json_t *o = json_loads(text, 0, NULL), *row, *found = NULL;
    size_t i;

    free(text);
    json_array_foreach(json_object_get(o, "tasks"), i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "task")), name) == 0)
            found = json_incref(row);
    }
    json_decref(o);
    assert_non_null(found);
    return found;
}

static void expect_text(stage *s, const char *task, const char *key, const char *words)
{
    json_t *row = task_of(s, task);
    const char *text = json_string_value(json_object_get(row, key));

    if (!text || !strstr(text, words))
        fail_msg("%s of %s is \"%s\", and has no \"%s\"", key, task, text ? text : "", words);
    json_decref(row);
}

static void dies(stage *s, uint32_t index, stage_player *p)
{
    Weft__Died body = WEFT__DIED__INIT;

    stage_leave(p);
    body.role = WF_ROLE_WORKER;
    body.index = index;
    body.pid = p->incarnation;
    body.reason = (char *)"killed by signal 9";
    body.session = (char *)s->session;
    stage_say(&s->players[3], WF_DIED, &body.base);
    stage_turn(s, 0);
    assert_int_equal(s->rc, WF_OK);
}

static void the_splits_of_a_lost_worker_are_followed(void **state)
{
    stage *s = *state;
    json_t *row, *returned;

    stage_begin_lazy(s);
    dies(s, 0, &s->players[1]);
    row = task_of(s, "worker/0");
    returned = json_object_get(row, "returned");
    assert_int_equal(json_integer_value(json_object_get(returned, "splits")), 1);
    assert_int_equal(json_integer_value(json_object_get(returned, "waiting")), 1);
    assert_int_equal(json_integer_value(json_object_get(returned, "end")), 4);
    json_decref(row);
    stage_job_says(s, "one", "events",
                   "worker/0: killed by signal 9; its 1 split (records 0 to 4) is given out again");
    stage_job_says(s, "one", "lost_workers", "1");
    stage_let_train(&s->players[2]);
    stage_until(s, "one", "done");
    stage_job_says(s, "one", "undone_steps", "0");
}

static void who_was_given_them_is_named(void **state)
{
    stage *s = *state;
    json_t *row, *returned;

    stage_begin_lazy(s);
    dies(s, 0, &s->players[1]);
    stage_enter(s, WF_ROLE_WORKER, 0, 60)->lazy = true;
    stage_turn(s, 500);
    stage_turn(s, 500);
    stage_turn(s, 0);
    row = task_of(s, "worker/0");
    returned = json_object_get(row, "returned");
    assert_string_equal(json_string_value(json_object_get(returned, "to")), "worker/0");
    assert_int_equal(json_integer_value(json_object_get(returned, "waiting")), 0);
    json_decref(row);
    stage_job_says(s, "one", "events", "task.restarted worker/0 restarted after 0.0 s");
}

/* A process of another release; it does not come in, and its supervisor reports its end too. */
static void a_refusal_is_the_reason_whatever_the_exit_code_says(void **state)
{
    stage *s = *state;
    Weft__Hello hello = WEFT__HELLO__INIT;
    Weft__Died body = WEFT__DIED__INIT;
    wf_stranger stranger;

    stage_begin_lazy(s);
    hello.version_least = hello.version_most = 7;
    hello.cluster = "stage";
    hello.role = WF_ROLE_WORKER;
    hello.peer_role = WF_ROLE_MASTER;
    hello.release = "9.1";
    wf_stranger_dial(&stranger, &s->nets, "master");
    wf_stranger_send(&stranger, WF_HELLO, 77, 1, &hello.base);
    stage_turn(s, 0);
    expect_text(s, "worker/0", "state", "training"); /* the one that is here is not touched */
    expect_text(s, "worker/0", "reason", "");
    dies(s, 0, &s->players[1]);
    wf_stranger_send(&stranger, WF_HELLO, 78, 2, &hello.base);
    stage_turn(s, 0);
    expect_text(s, "worker/0", "state", "refused");
    expect_text(s, "worker/0", "reason", "refused: worker/0 (weft 9.1) speaks protocol 7 to 7");
    expect_text(s, "worker/0", "reason", "; upgrade the master");
    body.role = WF_ROLE_WORKER;
    body.pid = 4711;
    body.down = true;
    body.reason = (char *)"ended with exit code 1";
    body.session = (char *)s->session;
    stage_say(&s->players[3], WF_DIED, &body.base);
    stage_turn(s, 0);
    expect_text(s, "worker/0", "state", "down");
    expect_text(s, "worker/0", "reason", "upgrade the master");
    stage_enter(s, WF_ROLE_WORKER, 0, 60);
    stage_turn(s, 20);
    expect_text(s, "worker/0", "state", "t");
    wf_stranger_close(&stranger);
}

static void a_task_that_never_came_has_no_age(void **state)
{
    stage *s = *state;
    json_t *row;

    stage_wait(s, 3000);
    row = task_of(s, "worker/0");
    assert_true(json_is_null(json_object_get(row, "age_s")));
    assert_string_equal(json_string_value(json_object_get(row, "state")), "missing");
    json_decref(row);
}

/* Of the job; p50 -1: nothing is known. */
static void expect_staleness(stage *s, int p50, int most)
{
    char *text = wf_master_status(s->master, s->now_ns);
    json_t *picture = json_loads(text, 0, NULL), *list = json_object_get(picture, "jobs");
    const json_t *it = json_object_get(json_array_get(list, 0), "staleness");

    assert_true(json_is_object(it) == (p50 >= 0));
    if (p50 >= 0) {
        assert_int_equal(json_integer_value(json_object_get(it, "p50")), p50);
        assert_int_equal(json_integer_value(json_object_get(it, "most")), most);
    }
    json_decref(picture);
    free(text);
}

static void a_ps_tells_what_it_does_and_holds(void **state)
{
    stage *s = *state;
    Weft__Beat body = WEFT__BEAT__INIT;
    wf_histogram staleness = {0};
    wf_stranger stranger;
    json_t *row;

    stage_begin_lazy(s);
    wf_stranger_dial(&stranger, &s->nets, "master");
    body.held_bytes = UINT64_MAX; /* its own word, which is bounded */
    for (int i = 0; i < 12; i++) {
        body.progress++;
        body.updates += 50;
        wf_stranger_send(&stranger, WF_BEAT, s->players[0].incarnation, 0, &body.base);
        stage_turn(s, 500);
    }
    row = task_of(s, "ps/0");
    expect_staleness(s, -1, 0);
    body.job = 1;
    body.n_staleness = WF_HISTOGRAM;
    body.staleness = staleness.n;
    wf_histogram_add(&staleness, 7);
    for (int i = 0; i < 98; i++)
        wf_histogram_add(&staleness, 3);
    wf_stranger_send(&stranger, WF_BEAT, s->players[0].incarnation, 0, &body.base);
    stage_turn(s, 20);
    expect_staleness(s, 3, 7);
    body.job = 2; /* which nobody knows here */
    wf_stranger_send(&stranger, WF_BEAT, s->players[0].incarnation, 0, &body.base);
    stage_turn(s, 20);
    expect_staleness(s, -1, 0);
    assert_int_equal(json_integer_value(json_object_get(row, "held_bytes")), INT64_MAX);
    assert_true(json_real_value(json_object_get(row, "updates_per_sec")) > 90);
    assert_true(json_real_value(json_object_get(row, "updates_per_sec")) < 101);
    json_decref(row);
    wf_stranger_close(&stranger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGED(the_splits_of_a_lost_worker_are_followed),
        STAGED(who_was_given_them_is_named),
        STAGED(a_refusal_is_the_reason_whatever_the_exit_code_says),
        STAGED(a_task_that_never_came_has_no_age),
        STAGED(a_ps_tells_what_it_does_and_holds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
