/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/master_unfit.c - a worker that cannot start, or fails in a step, and the job. */
#include "master_stage.h"

#include "common/wire/control.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void fault(stage *s, stage_player *p, wf_status status, const char *what)
{
    Weft__Fault body = WEFT__FAULT__INIT;

    body.status = status;
    body.what = (char *)what;
    stage_say(p, WF_FAULT, &body.base);
    stage_wait(s, 200);
}

/* A job that one of two workers cannot start; the other one stays at its split. */
static void begin_with_unfit(stage *s)
{
    stage_cast(s);
    stage_wait(s, 300);
    s->players[1].ready = (stage_answer){WF_IO, "cannot open /data/x.npy"};
    s->players[2].lazy = true;
    stage_run(s, "one");
}

static void a_start_that_fails_on_one_worker_costs_that_worker(void **state)
{
    stage *s = *state;

    begin_with_unfit(s);
    stage_wait(s, 200);
    assert_true(stage_count(s, "\"unfit\""));
    assert_true(stage_count(s, "worker/0: cannot open /data/x.npy"));
    stage_let_train(&s->players[2]);
    stage_wait(s, 200);
    stage_until(s, "one", "done");
    assert_int_equal(s->players[1].heard[WF_START], 1);
    assert_int_equal(s->players[1].heard[WF_DISMISS], 0);
}

static void it_is_asked_again_and_may_have_mended(void **state)
{
    stage *s = *state;

    begin_with_unfit(s);
    stage_wait(s, 9000);
    assert_int_equal(s->players[1].heard[WF_START], 1);
    s->players[1].ready = (stage_answer){WF_OK, ""};
    stage_wait(s, 4000);
    assert_int_equal(s->players[1].heard[WF_START], 2);
    assert_int_equal(stage_count(s, "\"unfit\""), 0);
}

static void what_fails_on_every_worker_fails_the_job_and_says_so(void **state)
{
    stage *s = *state;

    stage_cast(s);
    stage_wait(s, 300);
    for (int i = 1; i <= 2; i++)
        s->players[i].ready = (stage_answer){WF_IO, "cannot open /data/x.npy"};
    stage_do(s, "submit", "one");
    stage_until(s, "one", "failed");
    assert_true(stage_count(s, "cannot open /data/x.npy ("));
    assert_true(stage_count(s, "is the last worker; worker/"));
}

static void what_a_job_file_says_wrongly_fails_it_at_once(void **state)
{
    stage *s = *state;

    stage_cast(s);
    stage_wait(s, 300);
    s->players[1].ready = (stage_answer){WF_UNSUPPORTED, "no such map step"};
    stage_do(s, "submit", "one");
    stage_until(s, "one", "failed");
}

static void a_step_that_fails_costs_its_worker_and_its_records_go_to_others(void **state)
{
    stage *s = *state;

    stage_begin_lazy(s);
    stage_wait(s, 300);
    fault(s, &s->players[1], WF_IO, "cannot read /data/x.npy: Input/output error");
    assert_int_equal(s->players[1].heard[WF_DISMISS], 1);
    assert_true(stage_count(s, "its step failed: cannot read /data/x.npy"));
    assert_true(stage_count(s, "\"running\""));
    fault(s, &s->players[2], WF_IO, "cannot read /data/x.npy: Input/output error");
    stage_until(s, "one", "failed");
}

/* Workers of a job find these records and contents; it ends for it, and says why, or trains. */
static void find(stage *s, const uint64_t records[2], const uint64_t digest[2], const char *why)
{
    stage_cast(s);
    stage_wait(s, 300);
    for (int i = 0; i < 2; i++) {
        s->players[1 + i].records = records[i];
        s->players[1 + i].digest = digest[i];
    }
    stage_do(s, "submit", "one");
    stage_until(s, "one", why ? "failed" : "done");
    if (why)
        assert_true(stage_count(s, why) > 0);
}

static void workers_that_find_other_numbers_of_records_fail_the_job(void **state)
{
    find(*state, (const uint64_t[]){8, 9}, (const uint64_t[]){5, 5}, "training records, where ");
}

static void workers_that_find_other_content_fail_the_job(void **state)
{
    find(*state, (const uint64_t[]){8, 8}, (const uint64_t[]){5, 6},
         "finds as many training records as other workers, and other content in them");
}

static void workers_that_find_the_same_content_train(void **state)
{
    find(*state, (const uint64_t[]){8, 8}, (const uint64_t[]){6, 6}, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGED(a_start_that_fails_on_one_worker_costs_that_worker),
        STAGED(it_is_asked_again_and_may_have_mended),
        STAGED(what_fails_on_every_worker_fails_the_job_and_says_so),
        STAGED(what_a_job_file_says_wrongly_fails_it_at_once),
        STAGED(workers_that_find_other_numbers_of_records_fail_the_job),
        STAGED(workers_that_find_other_content_fail_the_job),
        STAGED(workers_that_find_the_same_content_train),
        STAGED(a_step_that_fails_costs_its_worker_and_its_records_go_to_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
