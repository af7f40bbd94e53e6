/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/master_disk.c - a disk that fails: each call in turn, under the journal and under
 * checkpoints. Nothing is acknowledged that is not on disk; what was refused is as it was; and with
 * the disk mended all goes on. */
#include "master/store/journal.h"
#include "master_stage.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_CALLS = 400, MOST_LIVES = 20 };

static stage *begin_cast(void)
{
    stage *s = stage_new();

    stage_cast(s);
    return s;
}

/* The master that ended on its journal begins again, after a power failure as well. */
static void raise_again(stage *s, bool power_fails, uint64_t seed)
{
    assert_int_equal(s->rc, WF_IO);
    assert_non_null(strstr(s->err.what, "the master's journal"));
    if (power_fails)
        wf_memdisk_crash(s->disk, seed);
    stage_raise(s);
    assert_int_equal(s->rc, WF_OK);
    stage_wait(s, 1000);
}

/* One command, with the n-th call of the disk failing from there, until none fails. Where it was
 * answered with success, it is so for good; where it was not, it can be asked again. */
static void under_a_failing_disk(stage *prepare(void), const Weft__Ask *ask, const char *then)
{
    bool failed = true;

    for (uint64_t n = 1; failed; n++) {
        for (int power_fails = 0; power_fails < 2; power_fails++) {
            stage *s = prepare();
            const wf_err *said;

            wf_memdisk_fail(s->disk, n, EIO, false);
            said = stage_ask(s, ask);
            failed = s->master == NULL;
            if (failed) {
                assert_null(said);
                raise_again(s, power_fails, n);
                said = stage_ask(s, ask);
                assert_non_null(said);
                /* What was on disk before the failure was noticed may have come to be. */
                assert_true(said->status == WF_OK || said->status == WF_EXISTS ||
                            said->status == WF_INVALID);
            } else {
                assert_int_equal(said->status, WF_OK);
            }
            wf_memdisk_fail(s->disk, 0, 0, false);
            stage_until(s, ask->job, then);
            stage_free(&s);
        }
        assert_true(n < MOST_CALLS);
    }
}

static void a_submit_is_on_disk_or_was_not_acknowledged(void **state)
{
    Weft__Ask ask = stage_ask_of("submit", "one");

    (void)state;
    under_a_failing_disk(begin_cast, &ask, "done");
}

static stage *with_a_running_job(void)
{
    stage *s = begin_cast();

    s->players[1].lazy = s->players[2].lazy = true;
    stage_run(s, "one");
    stage_turn(s, 0);
    return s;
}

static void a_stop_is_on_disk_or_was_not_acknowledged(void **state)
{
    Weft__Ask ask = stage_ask_of("stop", "one");
    stage *s;

    (void)state;
    for (uint64_t n = 1; n <= 2; n++) {
        s = with_a_running_job();
        wf_memdisk_fail(s->disk, n, ENOSPC, false);
        assert_null(stage_ask(s, &ask));
        raise_again(s, false, n);
        /* What was written and not synced may be there. */
        assert_true(strcmp(wf_master_job_state(s->master, "one"), "running") == 0 || n == 2);
        assert_int_equal(stage_ask(s, &ask)->status, WF_OK);
        assert_string_equal(wf_master_job_state(s->master, "one"), "stopping");
        stage_kill(s);
        stage_raise(s); /* it does not forget that it was asked */
        stage_wait(s, 1000);
        assert_string_equal(wf_master_job_state(s->master, "one"), "stopping");
        stage_free(&s);
    }
}

static stage *with_a_job_that_failed(void)
{
    stage *s = begin_cast();

    s->compiled = (stage_answer){WF_USAGE, "no"};
    assert_int_equal(wf_master_submit(s->master, "one", "bad", "", false, NULL), WF_OK);
    stage_until(s, "one", "failed");
    s->compiled.status = WF_OK;
    return s;
}

static void a_recover_is_on_disk_or_was_not_acknowledged(void **state)
{
    Weft__Ask ask = stage_ask_of("recover", "one");

    (void)state;
    under_a_failing_disk(with_a_job_that_failed, &ask, "done");
}

/* A whole job, in which one call of the disk fails: the journal's end the master, which begins
 * again; those under the first values delay the job. */
static void a_job_outlives_any_call_that_fails(void **state)
{
    uint64_t calls;
    stage *s = begin_cast();

    (void)state;
    calls = wf_memdisk_calls(s->disk);
    stage_submit(s, "one", "ledger");
    stage_until(s, "one", "done");
    calls = wf_memdisk_calls(s->disk) - calls;
    stage_free(&s);
    assert_true(calls > 20 && calls < MOST_CALLS);
    for (uint64_t n = 1; n <= calls; n++) {
        s = begin_cast();
        wf_memdisk_fail(s->disk, n, EIO, false);
        if (wf_master_submit(s->master, "one", "ledger", "", false, &s->err) != WF_OK) {
            s->rc = s->err.status;
            stage_kill(s);
        }
        for (int lives = 0; !s->master || strcmp(wf_master_job_state(s->master, "one"), "done");) {
            if (!s->master) {
                raise_again(s, n % 2, n);
                assert_true(++lives < MOST_LIVES);
                if (!wf_master_job_state(s->master, "one")[0])
                    assert_int_equal(wf_master_submit(s->master, "one", "ledger", "", false, NULL),
                                     WF_OK);
            }
            assert_string_not_equal(wf_master_job_state(s->master, "one"), "failed");
            stage_turn(s, 20);
            assert_true(s->now_ns < INT64_C(60000000000));
        }
        stage_free(&s);
    }
}

static void a_full_disk_delays_the_first_values_and_says_so(void **state)
{
    uint32_t waited = 0;

    (void)state;
    for (uint64_t n = 1; n < 60; n++) {
        stage *s = begin_cast();
        char *reason;

        stage_submit(s, "one", "ledger");
        wf_memdisk_fail(s->disk, n, ENOSPC, false);
        stage_turn(s, 20);
        if (s->master) {
            reason = stage_job_field(s, "one", "reason");
            if (strstr(reason, "No space left on device")) {
                waited++;
                stage_job_says(s, "one", "events", "job.waits");
                stage_job_says(s, "one", "state", "waiting");
                stage_job_says(s, "one", "generation", "0");
            }
            free(reason);
            stage_until(s, "one", "done");
            stage_job_says(s, "one", "generation", "1");
            stage_job_says(s, "one", "reason", "\"\"");
        }
        stage_free(&s);
    }
    assert_true(waited > 5);
}

/* The weights are held until the last checkpoint is written, or until the job is told to stop. */
static void the_last_checkpoint_is_tried_until_it_is_written(void **state)
{
    Weft__Ask recover = stage_ask_of("recover", "one");
    stage *s = *state;

    stage_cast(s);
    s->players[1].saved = s->players[2].saved =
        (stage_answer){WF_IO, "checkpoint at step 16: No space left on device"};
    stage_submit(s, "one", "ledger");
    stage_until(s, "one", "running");
    stage_wait(s, 25000); /* at once, after a second, another, and each ten */
    stage_job_says(s, "one", "state", "running");
    stage_job_says(s, "one", "failed_checkpoints", "5");
    stage_job_says(s, "one", "events", "job.waits for its last checkpoint");
    stage_do(s, "stop", "one");
    stage_until(s, "one", "failed");
    stage_job_says(s, "one", "reason", "the last checkpoint could not be written");
    stage_job_says(s, "one", "reason", "No space left on device");
    stage_job_says(s, "one", "checkpoints", "0");
    stage_job_says(s, "one", "epoch_trained", "64");
    assert_int_equal(stage_ask(s, &recover)->status, WF_OK);
    stage_until(s, "one", "running");
    stage_wait(s, 15000);
    stage_job_says(s, "one", "state", "running");
    s->players[1].saved = s->players[2].saved = (stage_answer){WF_OK, ""};
    assert_int_equal(stage_ask(s, &recover)->status, WF_OK);
    stage_until(s, "one", "done");
    stage_job_says(s, "one", "checkpoints", "1");
}

static void an_evaluation_that_fails_is_said_and_training_goes_on(void **state)
{
    stage *s = *state;

    s->model.evaluates = true;
    stage_cast(s);
    s->players[1].evaluated = (stage_answer){WF_IO, "cannot read t10k-images"};
    s->players[1].evaluates_before = 1;
    s->players[2].evaluated = s->players[1].evaluated;
    stage_submit(s, "one", "ledger");
    stage_until(s, "one", "done");
    stage_job_says(s, "one", "events", "val_loss 1.5000");
    stage_job_says(s, "one", "events", "the evaluation failed: cannot read t10k-images\"");
    stage_job_says(s, "one", "eval_epoch", "1");
    stage_job_says(s, "one", "reason", "\"\"");
}

static wf_status replay_nothing(void *arg, const Weft__Record *r, wf_err *err)
{
    (void)arg, (void)r, (void)err;
    return WF_OK;
}

/* As a later release may have written it. */
static void a_job_in_an_unknown_state_is_an_error(void **state)
{
    Weft__Record record = WEFT__RECORD__INIT;
    Weft__JobRecord job = WEFT__JOB_RECORD__INIT;
    wf_journal *j = NULL;
    stage *s = *state;

    stage_kill(s);
    assert_int_equal(
        wf_journal_open(wf_memdisk_disk(s->disk), "/state", 0, replay_nothing, NULL, &j, NULL),
        WF_OK);
    job.name = "one";
    job.text = "ledger";
    job.state = 99;
    record.job = &job;
    assert_int_equal(wf_journal_append(j, &record, NULL), WF_OK);
    assert_int_equal(wf_journal_commit(j, NULL), WF_OK);
    wf_journal_close(&j);
    stage_raise(s);
    assert_int_equal(s->rc, WF_CORRUPT);
    assert_non_null(strstr(s->err.what, "job one has state 99"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_submit_is_on_disk_or_was_not_acknowledged),
        cmocka_unit_test(a_stop_is_on_disk_or_was_not_acknowledged),
        cmocka_unit_test(a_recover_is_on_disk_or_was_not_acknowledged),
        cmocka_unit_test(a_job_outlives_any_call_that_fails),
        cmocka_unit_test(a_full_disk_delays_the_first_values_and_says_so),
        STAGED(the_last_checkpoint_is_tried_until_it_is_written),
        STAGED(an_evaluation_that_fails_is_said_and_training_goes_on),
        STAGED(a_job_in_an_unknown_state_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
