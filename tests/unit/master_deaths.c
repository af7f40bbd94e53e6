/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/master_deaths.c - reports that a task's process has ended: whose the master believes,
 * what it shows of the task then, and what becomes of the job. */
#include "master_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

static void report_death(stage *s, const Weft__Died *body)
{
    stage_say(&s->players[3], WF_DIED, &body->base);
    stage_turn(s, 0);
    assert_int_equal(s->rc, WF_OK);
}

/* A report of the master's own supervisor. */
static Weft__Died death_of(stage *s, uint32_t role, uint32_t index, uint64_t pid,
                           const char *reason)
{
    Weft__Died body = WEFT__DIED__INIT;

    body.role = role;
    body.index = index;
    body.pid = pid;
    body.reason = (char *)reason;
    body.session = (char *)s->session;
    return body;
}

static void died(stage *s, uint32_t role, uint32_t index, uint64_t pid)
{
    Weft__Died body = death_of(s, role, index, pid, "killed by signal 9");

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
    Weft__Died body = death_of(s, WF_ROLE_WORKER, 0, 20, "killed by signal 9");
    Weft__Register remote = WEFT__REGISTER__INIT;
    json_t *before, *after;

    stage_begin_lazy(s);
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
    assert_int_equal(stage_count(s, "\"refused_deaths\": 4"), 1);
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

/* A supervisor's list of one process. */
static void runs(stage *s, const char *session, uint32_t role, uint32_t index, uint64_t pid)
{
    Weft__Processes body = WEFT__PROCESSES__INIT;
    Weft__Process row = WEFT__PROCESS__INIT, *list[1] = {&row};

    row.role = role;
    row.index = index;
    row.pid = pid;
    body.session = (char *)session;
    body.processes = list;
    body.n_processes = 1;
    stage_say(&s->players[3], WF_PROCESSES, &body.base);
    stage_turn(s, 0);
    assert_int_equal(s->rc, WF_OK);
}

static void a_process_that_hangs_is_to_be_killed(void **state)
{
    stage *s = *state;
    const stage_player *supervisor;
    json_t *task;

    stage_begin_lazy(s);
    supervisor = &s->players[3];
    s->players[1].absent = true;
    for (int i = 0; i < 100 && stage_count(s, "nothing heard for") == 0; i++) {
        runs(s, s->session, WF_ROLE_WORKER, 0, 20);
        stage_wait(s, 100);
    }
    stage_wait(s, 9000); /* it may have heard, and be about to end */
    runs(s, s->session, WF_ROLE_WORKER, 0, 20);
    assert_int_equal(supervisor->heard[WF_HUNG], 0);
    stage_wait(s, 1000);
    runs(s, "", WF_ROLE_WORKER, 0, 20);
    runs(s, "second", WF_ROLE_WORKER, 0, 20); /* of nobody who may ask */
    runs(s, s->session, WF_ROLE_WORKER, 0, 21);
    runs(s, s->session, WF_ROLE_WORKER, 1, 21); /* a member */
    runs(s, s->session, WF_ROLE_PS, 0, 10);
    runs(s, s->session, WF_ROLE_PS, 77, 20);
    runs(s, s->session, 4711, 0, 20);
    assert_int_equal(supervisor->heard[WF_HUNG], 0);
    runs(s, s->session, WF_ROLE_WORKER, 0, 20);
    assert_int_equal(supervisor->heard[WF_HUNG], 1);
    died(s, WF_ROLE_WORKER, 0, 20);
    stage_enter(s, WF_ROLE_WORKER, 0, 60);
    stage_turn(s, 20);
    stage_wait(s, 11000);
    runs(s, s->session, WF_ROLE_WORKER, 0, 60);
    assert_int_equal(supervisor->heard[WF_HUNG], 1);
    task = task_of(s, "worker/0");
    assert_int_equal(json_integer_value(json_object_get(task, "pid")), 60);
    json_decref(task);
}

static void a_death_is_believed_of_this_very_process_only(void **state)
{
    stage *s = *state;
    char *before;

    stage_begin_lazy(s);
    before = stage_picture(s);
    died(s, WF_ROLE_WORKER, 0, 999);
    died(s, WF_ROLE_WORKER, 77, 20);
    died(s, 4711, 0, 20);
    stage_still_shows(s, before);
    stage_leave(&s->players[1]);
    died(s, WF_ROLE_WORKER, 0, 20);
    assert_true(stage_count(s, "killed by signal 9") > 0);
    stage_let_all_train(s);
    stage_until(s, "one", "done");
}

static void a_task_that_is_not_started_again_is_down_until_it_says_hello(void **state)
{
    stage *s = *state;
    Weft__Died body = death_of(s, WF_ROLE_WORKER, 0, 20,
                               "ended with exit code 2 (its files are wrong); see worker-0.log");
    json_t *task;

    stage_begin_lazy(s);
    stage_leave(&s->players[1]);
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
    Weft__Died body = death_of(s, WF_ROLE_WORKER, 1, 4711, "ended with exit code 3");
    json_t *task;

    stage_cast(s);
    stage_leave(&s->players[2]);
    stage_kill(s);
    stage_raise(s);
    body.down = true;
    stage_wait(s, 6000);
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

    stage_begin_lazy(s);
    stage_leave(&s->players[1]);
    died(s, WF_ROLE_WORKER, 0, 20);
    task = task_of(s, "worker/0");
    assert_true(json_is_null(json_object_get(task, "pid")));
    assert_string_equal(json_string_value(json_object_get(task, "reason")), "killed by signal 9");
    json_decref(task);
    stage_enter(s, WF_ROLE_WORKER, 0, 60);
    stage_turn(s, 20);
    task = task_of(s, "worker/0");
    assert_string_equal(json_string_value(json_object_get(task, "reason")), "killed by signal 9");
    json_decref(task);
    stage_wait(s, 65000);
    task = task_of(s, "worker/0");
    last = json_object_get(task, "last_end");
    assert_string_equal(json_string_value(json_object_get(task, "reason")), "");
    assert_string_equal(json_string_value(json_object_get(last, "reason")), "killed by signal 9");
    json_decref(task);
}

/* It is in an older view of the journal, and in none that follows: nobody waits for its claims. */
static void who_was_lost_before_the_master_ended_is_not_waited_for(void **state)
{
    static const char *const sessions[] = {"first", "second"};
    stage *s = *state;

    stage_begin_lazy(s);
    stage_leave(&s->players[2]);
    died(s, WF_ROLE_WORKER, 1, 21);
    for (int i = 0; i < 2; i++) {
        stage_kill(s);
        s->session = sessions[i];
        stage_raise(s);
        assert_int_equal(s->rc, WF_OK);
        if (i == 1) { /* everything had ended: what the players hold is of the other session */
            stage_leave(&s->players[0]);
            stage_leave(&s->players[1]);
            stage_enter(s, WF_ROLE_PS, 0, 40);
            stage_enter(s, WF_ROLE_WORKER, 0, 41);
            stage_wait(s, 1000);
            stage_do(s, "recover", "one");
            break;
        }
        stage_wait(s, 1000);
        s->players[1].heard[WF_SPLIT] = 0;
        s->players[1].split.next = s->players[1].split.end; /* it is done, and a next is wanted */
        stage_say(&s->players[1], WF_SPLIT_WANT, NULL);
        stage_turn(s, 20);
        assert_int_equal(s->players[1].heard[WF_SPLIT], 1);
    }
    stage_until(s, "one", "done");
}

/* A worker that dies of the first split it is dealt; `life` is its incarnation. */
static void dies_of_a_split(stage *s, uint64_t life)
{
    stage_player *p = stage_enter(s, WF_ROLE_WORKER, 0, life);

    p->lazy = true;
    for (int i = 0; i < 20 && p->heard[WF_SPLIT] == 0; i++)
        stage_turn(s, 20);
    assert_int_equal(p->heard[WF_SPLIT], 1);
    stage_leave(p);
    died(s, WF_ROLE_WORKER, 0, life);
}

static void only_a_ps_and_a_client(stage *s)
{
    stage_cast(s);
    for (uint64_t i = 1; i <= 2; i++) {
        stage_leave(&s->players[i]);
        died(s, WF_ROLE_WORKER, (uint32_t)i - 1, 19 + i);
    }
    stage_submit(s, "one", "ledger");
}

static void a_split_that_kills_three_times_is_set_aside_and_reported(void **state)
{
    stage *s = *state;

    only_a_ps_and_a_client(s);
    dies_of_a_split(s, 50);
    dies_of_a_split(s, 51);
    stage_job_says(s, "one", "left_out_records", "0");
    dies_of_a_split(s, 52);
    stage_job_says(s, "one", "left_out_records", "4");
    stage_job_says(
        s, "one", "events",
        "split 0 of epoch 1 (positions 0 to 3 of its order) is left out: 3 workers have died "
        "of it, the last one: killed by signal 9");
    stage_kill(s); /* it is on disk */
    stage_raise(s);
    assert_int_equal(s->rc, WF_OK);
    stage_job_says(s, "one", "left_out_records", "4");
    stage_job_says(s, "one", "epoch_trained", "4");
    stage_enter(s, WF_ROLE_WORKER, 0, 60);
    stage_until(s, "one", "done");
    stage_job_says(s, "one", "left_out_records", "4");
}

static void workers_that_die_of_everything_end_the_job(void **state)
{
    stage *s = *state;

    only_a_ps_and_a_client(s);
    for (uint64_t life = 50; life < 61; life++)
        dies_of_a_split(s, life);
    assert_string_equal(wf_master_job_state(s->master, "one"), "running");
    dies_of_a_split(s, 61);
    assert_string_equal(wf_master_job_state(s->master, "one"), "failed");
    stage_job_says(s, "one", "reason",
                   "workers die whatever they train, the last one: killed by signal 9");
    stage_job_says(s, "one", "hint", "see the workers' logs");
    stage_job_says(s, "one", "left_out_records", "12");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGED(a_death_is_believed_of_the_tasks_supervisor_only),
        STAGED(a_process_that_hangs_is_to_be_killed),
        STAGED(a_death_is_believed_of_this_very_process_only),
        STAGED(a_task_that_is_not_started_again_is_down_until_it_says_hello),
        STAGED(a_task_that_never_came_can_be_down),
        STAGED(the_reason_of_a_restart_leaves_the_view),
        STAGED(who_was_lost_before_the_master_ended_is_not_waited_for),
        STAGED(a_split_that_kills_three_times_is_set_aside_and_reported),
        STAGED(workers_that_die_of_everything_end_the_job),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
