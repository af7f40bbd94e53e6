/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/master_evaluation.c - an evaluation is dealt to all workers, with one result. */
#include "master_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void begin_with_units(stage *s)
{
    s->model.evaluates = true;
    s->model.eval_unit = 2; /* of 8 records; each unit has a loss of 3 for 2 of them */
    stage_cast(s);
    stage_run(s, "one");
}

static void says(stage *s, const char *field, const char *value)
{
    char *text = stage_job_field(s, "one", field);

    assert_string_equal(text, value);
    free(text);
}

static void all_workers_take_part(void **state)
{
    stage *s = *state;

    begin_with_units(s);
    stage_until(s, "one", "done");
    assert_true(s->players[1].heard[WF_EVAL] > 0);
    assert_true(s->players[2].heard[WF_EVAL] > 0);
    assert_int_equal(s->players[1].heard[WF_EVAL] + s->players[2].heard[WF_EVAL],
                     4 * s->model.epochs);
    says(s, "eval_counts", "{\"loss\": [12.0, 8.0]}");
}

static void one_worker_comes_to_the_same_numbers(void **state)
{
    stage *s = *state;

    s->model.evaluates = true;
    s->model.eval_unit = 2;
    stage_enter(s, WF_ROLE_PS, 0, 10);
    stage_enter(s, WF_ROLE_WORKER, 0, 20);
    stage_enter(s, WF_ROLE_WORKER, 1, 30);
    stage_leave(&s->players[2]);
    stage_enter(s, WF_ROLE_CLIENT, 1, 40);
    stage_run(s, "one");
    stage_until(s, "one", "done");
    assert_int_equal(s->players[1].heard[WF_EVAL], 4 * s->model.epochs);
    says(s, "eval_counts", "{\"loss\": [12.0, 8.0]}");
}

static void what_one_worker_cannot_evaluate_another_does(void **state)
{
    stage *s = *state;

    s->model.evaluates = true;
    s->model.eval_unit = 2;
    stage_cast(s);
    s->players[1].evaluated = (stage_answer){WF_IO, "cannot read"};
    s->players[1].evaluates_before = 1;
    stage_run(s, "one");
    stage_until(s, "one", "done");
    assert_true(s->players[2].heard[WF_EVAL] > s->players[1].heard[WF_EVAL]);
    says(s, "eval_counts", "{\"loss\": [12.0, 8.0]}");
}

static void stage_with(stage *s, uint64_t records, uint64_t found, ProtobufCBinaryData sums)
{
    s->model.evaluates = true;
    s->model.eval_unit = 2;
    stage_cast(s);
    for (int i = 1; i <= STAGE_WORKERS; i++) {
        s->players[i].eval_records = records;
        s->players[i].eval_found = found;
        s->players[i].eval_sums = sums;
    }
    stage_submit(s, "one", "ledger");
    stage_until(s, "one", "done");
    assert_int_equal(s->rc, WF_OK);
}

static void records_that_cannot_be_cost_the_numbers_only(void **state)
{
    stage_with(*state, UINT64_C(1) << 60, 8, (ProtobufCBinaryData){0});
    says(*state, "eval_counts", "{}");
}

static void records_that_a_result_makes_up_cost_the_numbers_only(void **state)
{
    stage_with(*state, 0, UINT64_C(1) << 60, (ProtobufCBinaryData){0});
    says(*state, "eval_counts", "{}");
}

static void sums_that_cannot_be_read_cost_the_numbers_only(void **state)
{
    stage_with(*state, 8, 8, (ProtobufCBinaryData){3, (uint8_t *)"???"});
    says(*state, "eval_counts", "{}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGED(all_workers_take_part),
        STAGED(one_worker_comes_to_the_same_numbers),
        STAGED(what_one_worker_cannot_evaluate_another_does),
        STAGED(records_that_cannot_be_cost_the_numbers_only),
        STAGED(records_that_a_result_makes_up_cost_the_numbers_only),
        STAGED(sums_that_cannot_be_read_cost_the_numbers_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
