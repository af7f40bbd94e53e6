/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/master_asks.c - what cannot be done is answered in one sentence, and changes nothing.
 */
#include "common/wire/control.h"
#include "master_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Text that no record of the journal has room for, though a message has. */
enum { TOO_LONG = 9 << 20 };

static void refused(stage *s, const char *command, const char *job, wf_status status,
                    const char *words)
{
    Weft__Ask ask = stage_ask_of(command, job);

    stage_refused(s, &ask, status, words);
}

static void let_nobody_train(stage *s)
{
    s->players[1].lazy = s->players[2].lazy = true;
}

static void what_the_master_does_not_know_is_said(void **state)
{
    stage *s = *state;

    stage_cast(s);
    refused(s, "dance", "", WF_UNSUPPORTED, "knows no command \"dance\"");
    refused(s, "stop", "nobody", WF_NOTFOUND, "no job named nobody");
    refused(s, "recover", "nobody", WF_NOTFOUND, "no job named nobody");
}

static void a_question_that_is_none_is_answered(void **state)
{
    stage *s = *state;
    stage_player *client;
    wf_msg *m;

    stage_cast(s);
    client = &s->players[3];
    m = stage_message(client, WF_ASK);
    memset(wf_msg_control(m, 64), 0xff, 64);
    stage_send(client, &m);
    stage_turn(s, 0);
    assert_int_equal(s->rc, WF_OK);
    assert_true(client->answered);
    assert_int_equal(client->answer.status, WF_PROTO);
    assert_true(client->answer.what[0]);
}

static void no_job_has_the_name_of_a_path(void **state)
{
    static const char *const names[] = {"", "../up", ".hidden", "a b", "Job", "job/two"};
    char long_name[80];
    stage *s = *state;

    stage_cast(s);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        refused(s, "submit", names[i], WF_USAGE, "is no name for a job");
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    refused(s, "submit", long_name, WF_USAGE, "is no name for a job");
}

static void a_name_is_taken_once(void **state)
{
    stage *s = *state;
    Weft__Ask again = stage_ask_of("submit", "one");

    stage_cast(s);
    let_nobody_train(s);
    stage_run(s, "one");
    stage_turn(s, 0);
    refused(s, "submit", "one", WF_EXISTS, "a job named one is there already (running)");
    again.resume = true;
    stage_refused(s, &again, WF_EXISTS, "job one is running");
}

static void end_badly(stage *s, const char *job)
{
    s->compiled = (stage_answer){WF_USAGE, "no"};
    stage_submit(s, job, "bad");
    stage_until(s, job, "failed");
}

static void a_job_means_its_newest_run(void **state)
{
    stage *s = *state;
    Weft__Ask anew = stage_ask_of("submit", "one#4");

    stage_cast(s);
    let_nobody_train(s);
    end_badly(s, "one#1");
    end_badly(s, "one#10");
    end_badly(s, "one#9");
    assert_int_equal(wf_master_newest_run(s->master, "one"), 10);
    assert_int_equal(wf_master_newest_run(s->master, "on"), -1);
    stage_run(s, "one#11");
    assert_string_equal(wf_master_job_state(s->master, "one"), "running");
    assert_string_equal(wf_master_job_state(s->master, "one#9"), "failed");
    anew.text = "ledger";
    stage_refused(s, &anew, WF_EXISTS, "job one#11 is running");
    refused(s, "submit", "one", WF_EXISTS, "a job named one#11 is there already (running)");
    refused(s, "recover", "one#12", WF_NOTFOUND, "no job named one#12");
    stage_submit(s, "another#1", "bad"); /* of another job: it waits its turn */
    assert_string_equal(wf_master_job_state(s->master, "another"), "queued");
    stage_do(s, "stop", "one");
    assert_string_equal(wf_master_job_state(s->master, "one#11"), "stopping");
}

/* Its files go when that is on disk, and not before; and what is gone stays gone. */
static void a_run_that_is_over_is_removed(void **state)
{
    stage *s = *state;

    stage_cast(s);
    let_nobody_train(s);
    end_badly(s, "one#1");
    end_badly(s, "one#2");
    stage_run(s, "two#1");
    refused(s, "forget", "two#1", WF_EXISTS, "job two#1 is running");
    refused(s, "forget", "one/..", WF_USAGE, "is no name for a job");
    s->forgotten[0] = 0;
    assert_int_equal(wf_master_forget(s->master, "one#1", &s->err), WF_OK);
    assert_false(wf_master_durable(s->master));
    assert_string_equal(s->forgotten, "");
    stage_turn(s, 0);
    assert_string_equal(s->forgotten, "one#1 ");
    assert_int_equal(stage_count(s, "one#1"), 0);
    assert_string_equal(wf_master_job_state(s->master, "one#1"), "");
    stage_do(s, "forget", "one"); /* no run has that name: only a folder may */
    stage_do(s, "forget", "nobody#7");
    assert_string_equal(s->forgotten, "one#1 one nobody#7 ");
    assert_string_equal(wf_master_job_state(s->master, "one#2"), "failed");
    stage_kill(s);
    stage_raise(s);
    assert_int_equal(s->rc, WF_OK);
    assert_string_equal(wf_master_job_state(s->master, "one#1"), "");
    assert_string_equal(wf_master_job_state(s->master, "one#2"), "failed");
    assert_string_equal(wf_master_job_state(s->master, "two"), "resuming");
    stage_submit(s, "one#1", "bad"); /* the number is free again; it waits its turn */
    stage_turn(s, 0);
    stage_kill(s);
    stage_raise(s);
    assert_int_equal(s->rc, WF_OK);
    assert_string_equal(wf_master_job_state(s->master, "one#1"), "queued");
    assert_int_equal(stage_count(s, "\"one#1\""), 1);
}

/* It would be in memory only: after a restart nobody would know its text. */
static void a_text_without_room_in_the_journal_is_refused(void **state)
{
    stage *s = *state;
    Weft__Ask ask = stage_ask_of("submit", "large");
    char *text = calloc(1, TOO_LONG + 1);

    assert_non_null(text);
    memset(text, '#', TOO_LONG);
    stage_cast(s);
    ask.text = text;
    stage_refused(s, &ask, WF_FULL, "bytes");
    assert_string_equal(wf_master_job_state(s->master, "large"), "");
    stage_submit(s, "one", "bad");
    s->compiled = (stage_answer){WF_USAGE, "job.yaml:3: unknown key \"modle\""};
    stage_until(s, "one", "failed");
    ask.job = "one";
    ask.resume = true;
    stage_refused(s, &ask, WF_FULL, "bytes");
    free(text);
}

static void the_list_of_jobs_has_an_end(void **state)
{
    stage *s = *state;
    char name[16];
    wf_err err;

    s->compiled = (stage_answer){WF_USAGE, "no"};
    for (int i = 0; i < 4096; i++) {
        snprintf(name, sizeof name, "job-%d", i);
        stage_submit(s, name, "bad");
    }
    assert_int_equal(wf_master_submit(s->master, "one-more", "bad", "", false, &err), WF_FULL);
    assert_non_null(strstr(err.what, "4096 jobs"));
    assert_string_equal(wf_master_job_state(s->master, "one-more"), "");
}

static void a_job_that_does_not_compile_says_why_and_the_next_one_runs(void **state)
{
    stage *s = *state;
    Weft__Ask recover = stage_ask_of("recover", "one");

    stage_cast(s);
    s->compiled = (stage_answer){WF_SHAPE, "Gemm \"fc1\": A is [32, 784], B is [10, 784]"};
    stage_submit(s, "one", "bad");
    stage_submit(s, "two", "ledger");
    stage_until(s, "one", "failed");
    stage_job_says(s, "one", "reason", "Gemm \\\"fc1\\\": A is [32, 784], B is [10, 784]");
    stage_job_says(s, "one", "hint", "change it");
    stage_until(s, "two", "done");
    /* Whoever has mended the file that it names asks for it again. */
    s->compiled.status = WF_OK;
    assert_int_equal(stage_ask(s, &recover)->status, WF_OK);
    stage_until(s, "one", "done");
    stage_job_says(s, "one", "reason", "\"\"");
}

/* As a sentence that was cut in the middle of a character. */
static void a_reason_that_is_no_utf8_is_told_all_the_same(void **state)
{
    stage *s = *state;

    stage_cast(s);
    s->compiled = (stage_answer){WF_SHAPE, "the field na\xc3\xafve\xc3"};
    stage_submit(s, "one", "bad");
    stage_until(s, "one", "failed");
    stage_job_says(s, "one", "reason", "the field naïve\\\\xc3");
}

/* It would read and write the checkpoints of the other. */
static void a_file_of_another_job_is_never_run(void **state)
{
    stage *s = *state;
    Weft__Ask recover = stage_ask_of("recover", "one");

    stage_cast(s);
    stage_submit(s, "one", "others");
    stage_until(s, "one", "failed");
    stage_job_says(s, "one", "reason", "job one was submitted with the file of job another");
    assert_int_equal(stage_ask(s, &recover)->status, WF_OK);
    stage_turn(s, 20);
    stage_turn(s, 20);
    assert_string_equal(wf_master_job_state(s->master, "one"), "failed");
    stage_job_says(s, "one", "reason", "job one was submitted with the file of job another");
}

static void a_job_that_no_message_can_carry_fails(void **state)
{
    stage *s = *state;
    Weft__Ask recover = stage_ask_of("recover", "one");

    stage_cast(s);
    s->wide = (size_t)63 << 20;
    stage_submit(s, "one", "wide");
    for (int i = 0; i < 2; i++) {
        stage_until(s, "one", "failed");
        stage_job_says(s, "one", "reason", "that is too much");
        stage_job_says(s, "one", "hint", "raise slice_bytes");
        assert_int_equal(s->players[0].heard[WF_SETUP], 0);
        assert_int_equal(stage_ask(s, &recover)->status, WF_OK);
        stage_turn(s, 20);
    }
}

static void a_running_job_is_not_recovered(void **state)
{
    stage *s = *state;
    Weft__Ask ask = stage_ask_of("recover", "one");
    char *change[1] = {"epochs=3"};
    char *before, *after;

    stage_cast(s);
    let_nobody_train(s);
    stage_run(s, "one");
    stage_turn(s, 0);
    before = stage_picture(s);
    assert_int_equal(stage_ask(s, &ask)->status, WF_OK); /* it recovers by itself */
    after = stage_picture(s);
    assert_string_equal(before, after);
    free(before);
    free(after);
    ask.from_step = 8;
    stage_refused(s, &ask, WF_EXISTS, "job one is running");
    ask.from_step = -1;
    ask.set = change;
    ask.n_set = 1;
    stage_refused(s, &ask, WF_EXISTS, "job one is running");
}

static void a_job_that_is_over_is_not_stopped(void **state)
{
    stage *s = *state;
    Weft__Ask recover = stage_ask_of("recover", "one");

    stage_cast(s);
    stage_submit(s, "one", "ledger");
    stage_submit(s, "two", "ledger");
    stage_submit(s, "three", "ledger");
    stage_do(s, "stop", "two"); /* queued: at once */
    assert_string_equal(wf_master_job_state(s->master, "two"), "stopped");
    stage_until(s, "one", "done");
    stage_until(s, "three", "done");
    stage_turn(s, 20);
    refused(s, "stop", "two", WF_INVALID, "job two is stopped already");
    refused(s, "stop", "one", WF_INVALID, "job one is done already");
    refused(s, "recover", "one", WF_EXISTS, "job one is done");
    recover.from_step = 999; /* no such checkpoint: it fails, and says so */
    assert_int_equal(stage_ask(s, &recover)->status, WF_OK);
    stage_until(s, "one", "failed");
    stage_job_says(s, "one", "reason", "999");
    refused(s, "stop", "one", WF_INVALID, "job one is failed already");
}

static void a_job_is_stopped_once_and_asked_twice(void **state)
{
    stage *s = *state;
    size_t journal;

    stage_cast(s);
    let_nobody_train(s);
    stage_run(s, "one");
    stage_turn(s, 0);
    stage_do(s, "stop", "one");
    assert_string_equal(wf_master_job_state(s->master, "one"), "stopping");
    journal = stage_journal_bytes(s);
    stage_do(s, "stop", "one");
    assert_int_equal(journal, stage_journal_bytes(s));
}

static const char text[] = "job: one\nmodel: {input: {x: [2]}, layers: [{dense: {units: 1}}]}\n"
                           "loss: mean_squared_error\n"
                           "data: {format: npy, train: {x: x.npy, y: y.npy}}\n"
                           "batch: 2\nepochs: 1\noptimizer: sgd\n";

static void a_change_that_does_not_compile_is_taken_back(void **state)
{
    stage *s = *state;
    Weft__Ask ask = stage_ask_of("recover", "one");
    char *bad[1] = {"batch=666"}, *good[1] = {"batch=5"};

    stage_cast(s);
    stage_submit(s, "one", text);
    stage_until(s, "one", "done");
    s->compiled = (stage_answer){WF_SHAPE, "the model does not like 666"};
    ask.n_set = 1;
    for (int i = 0; i < 2; i++) {
        ask.set = bad;
        assert_int_equal(stage_ask(s, &ask)->status, WF_OK);
        stage_until(s, "one", "failed");
        stage_job_says(s, "one", "reason", "does not like 666");
        stage_job_says(s, "one", "set", "\"\"");
        stage_job_says(s, "one", "events", "what was set is taken back");
    }
    ask.set = good;
    assert_int_equal(stage_ask(s, &ask)->status, WF_OK);
    stage_until(s, "one", "done");
    stage_job_says(s, "one", "set", "batch: 5");
    ask.set = bad;
    assert_int_equal(stage_ask(s, &ask)->status, WF_OK);
    stage_until(s, "one", "failed");
    stage_turn(s, 20);
    stage_kill(s); /* the journal has it as well */
    stage_raise(s);
    stage_job_says(s, "one", "set", "batch: 5");
}

static void what_may_not_change_is_refused_with_the_text_as_it_was(void **state)
{
    static const struct {
        const char *set, *said;
    } bad[] = {{"model=x", "cannot change"},
               {"epochs", "has no value"},
               {"epochs=", "epochs"},
               {"optimizer.learning_rate=1 2", "learning_rate"},
               {"epochs=-3", "\"epochs\" must be a whole number"},
               {"optimizer.no_such_option=1", "no_such_option"},
               {"strategy=none", "no strategy \"none\""},
               {"strategy=mirrored", "wants at most 0 ps"}};
    stage *s = *state;
    Weft__Ask ask = stage_ask_of("recover", "one");

    stage_cast(s);
    stage_submit(s, "one", text);
    stage_submit(s, "two", text);
    stage_until(s, "one", "done");
    stage_until(s, "two", "done");
    ask.n_set = 2;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *set[2] = {"epochs=3", (char *)bad[i].set};

        ask.set = set;
        stage_refused(s, &ask, WF_USAGE, bad[i].said);
        stage_job_says(s, "one", "set", "\"\"");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGED(what_the_master_does_not_know_is_said),
        STAGED(a_question_that_is_none_is_answered),
        STAGED(no_job_has_the_name_of_a_path),
        STAGED(a_name_is_taken_once),
        STAGED(a_job_means_its_newest_run),
        STAGED(a_run_that_is_over_is_removed),
        STAGED(a_text_without_room_in_the_journal_is_refused),
        STAGED(the_list_of_jobs_has_an_end),
        STAGED(a_job_that_does_not_compile_says_why_and_the_next_one_runs),
        STAGED(a_reason_that_is_no_utf8_is_told_all_the_same),
        STAGED(a_file_of_another_job_is_never_run),
        STAGED(a_job_that_no_message_can_carry_fails),
        STAGED(a_running_job_is_not_recovered),
        STAGED(a_job_that_is_over_is_not_stopped),
        STAGED(a_job_is_stopped_once_and_asked_twice),
        STAGED(a_change_that_does_not_compile_is_taken_back),
        STAGED(what_may_not_change_is_refused_with_the_text_as_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
