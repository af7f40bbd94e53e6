/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/near.c - which splits are near a host follows from files, records and addresses. */
#include "master/epoch/near.h"
#include "master/epoch/epoch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { WORKERS = 4, FILES = 3 };

typedef struct stage {
    wf_member members[WORKERS + 1];
    wf_master m;
    wf_prepared prepared;
    wf_epoch epoch;
    wf_job job;
    Weft__FileRecords rows[FILES], *files[FILES];
} stage;

static const char *const one[] = {"h1", "elsewhere"}, *const two[] = {"::1", "h1"};
static const struct wf_prepared_hosts hosts[] = {{"/d/a.csv", one, 2}, {"/d/b-*.csv", two, 2}};

static void set_stage(stage *s)
{
    static const char *const addresses[] = {"tcp://h1:7711|ipc:///run/w0", "ipc:///run/w1",
                                            "tcp://[::1]:7712", "tcp://h3:7713"};
    static const char *const paths[] = {"/d/a.csv#x", "/d/b-1.csv", "/d/c.csv"};
    static const uint64_t records[] = {100, 50, 30};

    *s = (stage){.m = {.members = s->members, .n_members = WORKERS + 1},
                 .prepared = {.hosts = hosts, .n_hosts = 2},
                 .job = {.name = "j", .epoch = &s->epoch, .prepared = &s->prepared}};
    s->members[0].task = (wf_task){WF_ROLE_PS, 0};
    snprintf(s->members[0].address, sizeof s->members[0].address, "tcp://ps:1");
    for (uint32_t i = 0; i < WORKERS; i++) {
        s->members[i + 1].task = (wf_task){WF_ROLE_WORKER, i};
        snprintf(s->members[i + 1].address, sizeof s->members[0].address, "%s", addresses[i]);
    }
    for (int i = 0; i < FILES; i++) {
        weft__file_records__init(&s->rows[i]);
        s->rows[i].path = (char *)paths[i];
        s->rows[i].records = records[i];
        s->files[i] = &s->rows[i];
    }
    assert_int_equal(wf_ledger_begin(&s->epoch.ledger, 0, 180, 20, NULL), WF_OK);
}

static void clear_stage(stage *s)
{
    wf_near_close(&s->epoch.near);
    wf_ledger_close(&s->epoch.ledger);
}

static void a_split_is_near_who_has_half_of_it(void **unused)
{
    stage s;
    const wf_ledger *l = &s.epoch.ledger;
    int h1, v6, h3;

    (void)unused;
    set_stage(&s);
    assert_int_equal(wf_near_host(&s.job, &s.members[1]), -1); /* no file is known */
    wf_near_take(&s.job, FILES, s.files);
    s.job.prepared = NULL; /* a master that has begun anew compiles it yet */
    wf_near_settle(&s.m, &s.job);
    assert_int_equal(wf_near_host(&s.job, &s.members[1]), -1);
    s.job.prepared = &s.prepared;
    wf_near_settle(&s.m, &s.job);
    h1 = wf_near_host(&s.job, &s.members[1]);
    v6 = wf_near_host(&s.job, &s.members[3]);
    h3 = wf_near_host(&s.job, &s.members[4]);
    assert_true(h1 >= 0 && v6 >= 0 && h3 >= 0 && h1 != v6 && v6 != h3);
    assert_int_equal(wf_near_host(&s.job, &s.members[2]), -1); /* it has no host */
    for (uint64_t i = 0; i < 9; i++) {
        /* 0 to 99 a.csv, 100 to 149 b-1.csv, then c.csv, which nobody has near */
        assert_int_equal(wf_ledger_is_near(l, i, h1), i < 8);
        assert_int_equal(wf_ledger_is_near(l, i, v6), i >= 5 && i < 8); /* 7 by half */
        assert_false(wf_ledger_is_near(l, i, h3));
    }
    clear_stage(&s);
}

static void an_epoch_that_is_opened_later_is_told(void **unused)
{
    stage s;
    int v6;

    (void)unused;
    set_stage(&s);
    wf_near_take(&s.job, FILES, s.files);
    wf_near_settle(&s.m, &s.job);
    v6 = wf_near_host(&s.job, &s.members[3]);
    assert_int_equal(wf_ledger_begin(&s.epoch.ledger, 1, 180, 60, NULL), WF_OK);
    assert_false(wf_ledger_is_near(&s.epoch.ledger, 2, v6));
    wf_near_apply(&s.job);
    assert_true(wf_ledger_is_near(&s.epoch.ledger, 2, v6));  /* 120 to 179: half of it */
    assert_false(wf_ledger_is_near(&s.epoch.ledger, 1, v6)); /* 60 to 119: a third */
    wf_near_dealt(&s.job, 2, v6);
    wf_near_dealt(&s.job, 1, v6);
    wf_near_dealt(&s.job, 2, -1);
    assert_int_equal(s.epoch.near.dealt_near, 1);
    assert_int_equal(s.epoch.near.dealt_far, 2);
    clear_stage(&s);
}

static void without_hosts_nothing_is_near(void **unused)
{
    stage s;

    (void)unused;
    set_stage(&s);
    s.prepared.n_hosts = 0;
    wf_near_take(&s.job, FILES, s.files);
    wf_near_settle(&s.m, &s.job);
    assert_null(s.epoch.near.hosts);
    assert_null(s.epoch.ledger.near);
    wf_near_close(&s.epoch.near);
    s.rows[0].records = UINT64_MAX; /* more than there can be */
    wf_near_take(&s.job, FILES, s.files);
    assert_null(s.epoch.near.files);
    clear_stage(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_split_is_near_who_has_half_of_it),
        cmocka_unit_test(an_epoch_that_is_opened_later_is_told),
        cmocka_unit_test(without_hosts_nothing_is_near),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
