/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/master_deaths.c - reports that a task's process has ended: whose the master believes,
 * and what it shows of the task then. */
#include "master_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

/* A job whose workers stay at their splits: nothing moves by itself. */
static void begin_job(stage *s)
{
    stage_cast(s);
    s->players[1].lazy = s->players[2].lazy = true;
    stage_run(s, "one");
    stage_turn(s, 0);
    stage_turn(s, 0);
}

static void report_death(stage *s, const Weft__Died *body)
{
    stage_say(&s->players[3], WF_DIED, &body->base);
    stage_turn(s, 0);
    assert_int_equal(s->rc, WF_OK);
}

/* The report of the master's own supervisor that worker 0 was killed. */
static void died(stage *s)
{
    Weft__Died body = WEFT__DIED__INIT;

    body.role = WF_ROLE_WORKER;
    body.pid = 20;
    body.reason = "killed by signal 9";
    body.session = (char *)s->session;
    report_death(s, &body);
}

static json_t *task_of(stage *s, const char *name)
{
    json_t *rows, *row;
    char *text = stage_picture(s);
    json_t *o = json_loads(text, 0, NULL), *found = NULL;
    size_t i;

    free(text);
    rows = json_object_get(o, "tasks");
    json_array_foreach(rows, i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "task")), name) == 0)
            found = json_incref(row);
    }
    json_decref(o);
    assert_non_null(found);
    return found;
}

/* Every number right but the session: only the supervisors know that. */
static void a_death_is_believed_of_the_tasks_supervisor_only(void **state)
{
    static const char *const sessions[] = {"", "second", "firs", "first "};
    stage *s = *state;
    Weft__Died body = WEFT__DIED__INIT;
    Weft__Register remote = WEFT__REGISTER__INIT;
    json_t *before, *after;
    char *picture;

    begin_job(s);
    body.role = WF_ROLE_WORKER;
    body.pid = 20;
    body.reason = "killed by signal 9";
    for (size_t i = 0; i < 4; i++) {
        before = task_of(s, "worker/0");
        body.session = (char *)sessions[i];
        body.down = i % 2;
        report_death(s, &body);
        after = task_of(s, "worker/0");
        assert_true(json_equal(before, after));
        json_decref(before);
        json_decref(after);
    }
    picture = stage_picture(s);
    assert_non_null(strstr(picture, "\"refused_deaths\": 4"));
    free(picture);
    /* The supervisor of another host has a session of its own, which its tasks tell. */
    body.down = false;
    body.session = "second";
    remote.session = "second";
    stage_say(&s->players[1], WF_REGISTER, &remote.base);
    stage_turn(s, 0);
    report_death(s, &body);
    after = task_of(s, "worker/0");
    assert_string_equal(json_string_value(json_object_get(after, "state")), "restarting");
    json_decref(after);
}

static void a_task_that_is_not_started_again_is_down_until_it_says_hello(void **state)
{
    stage *s = *state;
    Weft__Died body = WEFT__DIED__INIT;
    json_t *task;

    begin_job(s);
    stage_leave(&s->players[1]);
    body.role = WF_ROLE_WORKER;
    body.pid = 20;
    body.reason = "ended with exit code 2 (its files are wrong); see worker-0.log";
    body.session = (char *)s->session;
    body.down = true;
    report_death(s, &body);
    report_death(s, &body); /* as after each fresh link */
    task = task_of(s, "worker/0");
    assert_string_equal(json_string_value(json_object_get(task, "state")), "down");
    assert_string_equal(json_string_value(json_object_get(task, "reason")), body.reason);
    assert_true(json_is_null(json_object_get(task, "pid")));
    json_decref(task);
    stage_enter(s, WF_ROLE_WORKER, 0, 60);
    stage_turn(s, 20);
    report_death(s, &body); /* of the process before */
    task = task_of(s, "worker/0");
    assert_string_not_equal(json_string_value(json_object_get(task, "state")), "down");
    assert_int_equal(json_integer_value(json_object_get(task, "pid")), 60);
    json_decref(task);
}

static void a_task_that_never_came_can_be_down(void **state)
{
    stage *s = *state;
    Weft__Died body = WEFT__DIED__INIT;
    json_t *task;

    stage_enter(s, WF_ROLE_PS, 0, 10);
    stage_enter(s, WF_ROLE_WORKER, 0, 20);
    stage_enter(s, WF_ROLE_WORKER, 1, 21);
    stage_enter(s, WF_ROLE_CLIENT, 0, 30);
    stage_turn(s, 20);
    stage_leave(&s->players[2]);
    stage_kill(s);
    stage_raise(s);
    body.role = WF_ROLE_WORKER;
    body.index = 1;
    body.pid = 4711;
    body.reason = "ended with exit code 3";
    body.session = (char *)s->session;
    body.down = true;
    for (int ms = 0; ms < 6000; ms += 100)
        stage_turn(s, 100);
    report_death(s, &body);
    task = task_of(s, "worker/1");
    assert_string_equal(json_string_value(json_object_get(task, "state")), "down");
    json_decref(task);
}

/* The reason of a restart is shown for a minute of the next incarnation, and kept as its last_end.
 */
static void the_reason_of_a_restart_leaves_the_view(void **state)
{
    stage *s = *state;
    json_t *task, *last;

    begin_job(s);
    stage_leave(&s->players[1]);
    died(s);
    task = task_of(s, "worker/0");
    assert_true(json_is_null(json_object_get(task, "pid")));
    assert_string_equal(json_string_value(json_object_get(task, "reason")), "killed by signal 9");
    json_decref(task);
    stage_enter(s, WF_ROLE_WORKER, 0, 60);
    stage_turn(s, 20);
    task = task_of(s, "worker/0");
    assert_string_equal(json_string_value(json_object_get(task, "reason")), "killed by signal 9");
    json_decref(task);
    for (int i = 0; i < 650; i++)
        stage_turn(s, 100);
    task = task_of(s, "worker/0");
    last = json_object_get(task, "last_end");
    assert_string_equal(json_string_value(json_object_get(task, "reason")), "");
    assert_string_equal(json_string_value(json_object_get(last, "reason")), "killed by signal 9");
    json_decref(task);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGED(a_death_is_believed_of_the_tasks_supervisor_only),
        STAGED(a_task_that_is_not_started_again_is_down_until_it_says_hello),
        STAGED(a_task_that_never_came_can_be_down),
        STAGED(the_reason_of_a_restart_leaves_the_view),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
