/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/job_lines.c - which lines of a job are kept for its followers. */
#include "master/job/lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static bool has(const wf_job_lines *l, const char *text)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (strcmp(l->kept[i].text, text) == 0)
            return true;
    return false;
}

/* Numbers rise, and the newest line is the last one told. */
static void check(const wf_job_lines *l)
{
    assert_in_range(l->n, 0, WF_JOB_LINES);
    for (uint32_t i = 1; i < l->n; i++)
        assert_true(l->kept[i].number > l->kept[i - 1].number);
    assert_int_equal(l->kept[l->n - 1].number, l->told - 1);
}

static void add(wf_job_lines *l, const char *kind, int i)
{
    char text[64];

    snprintf(text, sizeof text, "%s %d", kind, i);
    wf_job_lines_add(l, text);
    check(l);
}

static void epochs_push_out_epochs_alone(void **state)
{
    wf_job_lines l = {0};

    (void)state;
    wf_job_lines_add(&l, "task.restarted worker/1 restarted");
    for (int i = 0; i < 1000; i++)
        add(&l, i % 2 ? "job.epoch" : "ckpt.saved", i);
    assert_true(has(&l, "task.restarted worker/1 restarted"));
    assert_true(has(&l, "ckpt.saved 998") && !has(&l, "job.epoch 1"));
    wf_job_lines_close(&l);
}

static void other_lines_leave_epochs_their_half(void **state)
{
    wf_job_lines l = {0};

    (void)state;
    for (int i = 0; i < WF_JOB_LINES; i++)
        add(&l, "job.epoch", i);
    for (int i = 0; i < 1000; i++)
        add(&l, "task.lost", i);
    assert_true(has(&l, "task.lost 999") && !has(&l, "task.lost 900"));
    assert_true(has(&l, "job.epoch 127"));
    add(&l, "job.epoch", 128);
    assert_true(has(&l, "job.epoch 128") && has(&l, "task.lost 999"));
    wf_job_lines_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(epochs_push_out_epochs_alone),
        cmocka_unit_test(other_lines_leave_epochs_their_half),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
