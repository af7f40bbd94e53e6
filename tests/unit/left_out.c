/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/left_out.c - splits that are left out stay so for as long as the job may go back to a
 * checkpoint of before them. */
#include "master/epoch/left_out.h"
#include "master/epoch/epoch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { RECORDS = 8, EACH = 2 };

static void begin_epoch(wf_job *j, uint32_t epoch)
{
    assert_int_equal(wf_ledger_begin(&j->epoch->ledger, epoch, RECORDS, EACH, NULL), WF_OK);
    wf_left_out_apply(j);
}

static void leave_out(wf_job *j, uint32_t epoch, uint64_t id)
{
    Weft__Split *row = &j->left_out_rows[j->n_left_out];

    weft__split__init(row);
    row->id = id;
    row->epoch = epoch;
    row->begin = id * EACH;
    row->end = row->next = (id + 1) * EACH;
    j->left_out[j->n_left_out++] = row;
}

static bool is_dealt(const wf_job *j, uint64_t id)
{
    return j->epoch->ledger.rows[id].next == wf_ledger_begins(&j->epoch->ledger, id);
}

static void a_split_of_an_epoch_that_may_come_again_stays_left_out(void **state)
{
    wf_epoch e = {0};
    wf_job j = {.epoch = &e};

    (void)state;
    begin_epoch(&j, 0);
    leave_out(&j, 0, 1);
    begin_epoch(&j, 1); /* and no checkpoint since */
    assert_int_equal(j.n_left_out, 1);
    leave_out(&j, 1, 3);
    begin_epoch(&j, 0); /* the job has gone back */
    assert_int_equal(j.n_left_out, 2);
    assert_true(is_dealt(&j, 0) && is_dealt(&j, 3));
    assert_false(is_dealt(&j, 1));
    j.latest_epoch = 1; /* a checkpoint in the second epoch */
    begin_epoch(&j, 1);
    assert_int_equal(j.n_left_out, 1);
    assert_false(is_dealt(&j, 3));
    assert_true(is_dealt(&j, 1));
    wf_ledger_close(&e.ledger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_split_of_an_epoch_that_may_come_again_stays_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
