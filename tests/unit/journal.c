/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/journal.c - what was appended comes back; a torn end is cut off; anything else that is
 * wrong is said, and never taken for an empty journal. */
#include "master/journal.h"
#include "tests/kit/memdisk.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { RECORDS = 8 };

typedef struct heard {
    uint32_t n, last;
    bool in_order;
} heard;

static wf_status hear(void *arg, const Weft__Record *record, wf_err *err)
{
    heard *h = arg;

    (void)err;
    h->n++;
    h->in_order &= record->view && record->view->number == h->last + 1;
    h->last = record->view ? record->view->number : 0;
    return WF_OK;
}

static wf_status open_journal(wf_memdisk *m, heard *h, wf_journal **out, wf_err *err)
{
    *h = (heard){.in_order = true};
    return wf_journal_open(wf_memdisk_disk(m), "/state", hear, h, out, err);
}

static wf_status append(wf_journal *j, uint32_t number)
{
    Weft__Record record = WEFT__RECORD__INIT;
    Weft__View view = WEFT__VIEW__INIT;

    view.number = number;
    record.view = &view;
    return wf_journal_append(j, &record, NULL);
}

static wf_memdisk *with_records(uint32_t n)
{
    wf_memdisk *m = wf_memdisk_new();
    wf_journal *j = NULL;
    heard h;

    assert_int_equal(open_journal(m, &h, &j, NULL), WF_OK);
    for (uint32_t i = 1; i <= n; i++)
        assert_int_equal(append(j, i), WF_OK);
    wf_journal_close(&j);
    return m;
}

static void what_was_appended_comes_back_in_order(void **state)
{
    wf_memdisk *m = with_records(RECORDS);
    wf_journal *j = NULL;
    heard h;

    (void)state;
    assert_int_equal(open_journal(m, &h, &j, NULL), WF_OK);
    assert_int_equal(h.n, RECORDS);
    assert_true(h.in_order);
    assert_int_equal(append(j, RECORDS + 1), WF_OK);
    wf_journal_close(&j);
    assert_int_equal(open_journal(m, &h, &j, NULL), WF_OK);
    assert_int_equal(h.n, RECORDS + 1);
    wf_journal_close(&j);
    wf_memdisk_free(&m);
}

/* Every length that a torn last write may leave. */
static void a_torn_end_is_cut_off(void **state)
{
    size_t whole, before;
    wf_memdisk *m = with_records(RECORDS);

    (void)state;
    wf_memdisk_bytes(m, "/state/journal", &whole);
    wf_memdisk_free(&m);
    m = with_records(RECORDS - 1);
    wf_memdisk_bytes(m, "/state/journal", &before);
    wf_memdisk_free(&m);
    for (size_t k = before; k < whole; k++) {
        wf_disk_file *f = NULL;
        wf_journal *j = NULL;
        heard h;

        m = with_records(RECORDS);
        assert_int_equal(
            wf_disk_open(wf_memdisk_disk(m), "/state/journal", WF_DISK_APPEND, &f, NULL), WF_OK);
        assert_int_equal(wf_disk_cut(f, k, NULL), WF_OK);
        wf_disk_drop(&f);
        assert_int_equal(open_journal(m, &h, &j, NULL), WF_OK);
        assert_int_equal(h.n, RECORDS - 1);
        assert_int_equal(append(j, RECORDS), WF_OK);
        wf_journal_close(&j);
        assert_int_equal(open_journal(m, &h, &j, NULL), WF_OK);
        assert_int_equal(h.n, RECORDS);
        assert_true(h.in_order);
        wf_journal_close(&j);
        wf_memdisk_free(&m);
    }
}

static void a_flipped_byte_before_the_last_record_is_said(void **state)
{
    size_t size, before;
    wf_memdisk *m = with_records(RECORDS - 1);

    (void)state;
    wf_memdisk_bytes(m, "/state/journal", &before);
    wf_memdisk_free(&m);
    for (size_t at = 0; at < before; at++) {
        wf_journal *j = NULL;
        uint8_t *bytes;
        wf_err err;
        heard h;

        m = with_records(RECORDS);
        bytes = wf_memdisk_bytes(m, "/state/journal", &size);
        bytes[at] ^= 0x10;
        assert_int_equal(open_journal(m, &h, &j, &err), WF_CORRUPT);
        assert_null(j);
        assert_non_null(strstr(err.what, "damaged"));
        assert_non_null(strstr(err.mend, "weft recover"));
        wf_memdisk_free(&m);
    }
}

/* The n-th call of the disk fails, for each n: either the journal opens with all of it, or not at
 * all. */
static void a_disk_that_cannot_be_read_is_not_an_empty_one(void **state)
{
    bool opened = false;

    (void)state;
    for (uint64_t n = 1; !opened; n++) {
        wf_memdisk *m = with_records(RECORDS);
        wf_journal *j = NULL;
        wf_err err;
        heard h;
        wf_status rc;

        wf_memdisk_fail(m, n, EIO, false);
        rc = open_journal(m, &h, &j, &err);
        assert_true(rc == WF_OK || rc == WF_IO);
        if (rc == WF_OK) {
            assert_int_equal(h.n, RECORDS);
            opened = true;
        }
        wf_journal_close(&j);
        wf_memdisk_free(&m);
        assert_true(n < 100);
    }
}

static void after_a_failed_append_nothing_is_taken(void **state)
{
    wf_memdisk *m = with_records(RECORDS);
    wf_journal *j = NULL;
    heard h;

    (void)state;
    assert_int_equal(open_journal(m, &h, &j, NULL), WF_OK);
    wf_memdisk_fail(m, 1, ENOSPC, false);
    assert_int_equal(append(j, RECORDS + 1), WF_IO);
    assert_int_equal(append(j, RECORDS + 1), WF_IO);
    wf_journal_close(&j);
    assert_int_equal(open_journal(m, &h, &j, NULL), WF_OK);
    assert_int_equal(h.n, RECORDS);
    wf_journal_close(&j);
    wf_memdisk_free(&m);
}

static void what_was_appended_survives_any_crash(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        wf_memdisk *m = with_records(RECORDS);
        wf_journal *j = NULL;
        heard h;

        wf_memdisk_crash(m, seed);
        assert_int_equal(open_journal(m, &h, &j, NULL), WF_OK);
        assert_int_equal(h.n, RECORDS);
        wf_journal_close(&j);
        wf_memdisk_free(&m);
    }
}

/* ---- shortening ---- */

enum { WORKERS = 3, SPLITS = 40, EPOCHS = 60, BOUND = 48 << 10 };

/* What the master keeps of a job's epochs, splits and steps. */
typedef struct state_of_job {
    uint32_t epoch;
    uint8_t done[SPLITS];
    uint64_t steps[WORKERS];
    uint32_t views;
} state_of_job;

static wf_status follow(void *arg, const Weft__Record *record, wf_err *err)
{
    state_of_job *j = arg;

    (void)err;
    j->views += record->view != NULL;
    if (record->epoch) {
        j->epoch = record->epoch->epoch;
        memset(j->done, 0, sizeof j->done);
    }
    if (record->finished) {
        for (size_t i = 0; i < record->finished->n_splits; i++)
            if (record->finished->splits[i]->epoch == j->epoch)
                j->done[record->finished->splits[i]->id] = 1;
        if (record->finished->steps > j->steps[record->finished->incarnation])
            j->steps[record->finished->incarnation] = record->finished->steps;
    }
    return WF_OK;
}

/* Record number i of a long job: of each epoch its beginning and half a view, then its splits. */
static wf_status append_of_job(wf_journal *j, uint32_t i, wf_err *err)
{
    uint32_t epoch = i / (SPLITS + 1), at = i % (SPLITS + 1);
    Weft__Record record = WEFT__RECORD__INIT;
    Weft__EpochRecord begins = WEFT__EPOCH_RECORD__INIT;
    Weft__SplitDone done = WEFT__SPLIT_DONE__INIT;
    Weft__View view = WEFT__VIEW__INIT;
    Weft__Split split = WEFT__SPLIT__INIT, *list[1] = {&split};

    record.number = 1;
    begins.epoch = split.epoch = epoch;
    split.id = at - 1;
    split.begin = UINT64_C(1) << 50;
    split.next = split.end = split.begin + 10;
    done.splits = list;
    done.n_splits = 1;
    done.incarnation = i % WORKERS;
    done.steps = i;
    view.number = epoch;
    if (at == 0)
        record.epoch = &begins;
    if (at == 0 && epoch % 2)
        record.view = &view;
    if (at > 0)
        record.finished = &done;
    return wf_journal_append(j, &record, err);
}

static void follows_to(wf_memdisk *m, uint32_t n)
{
    state_of_job wanted = {0}, got = {0};
    wf_journal *j = NULL;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i % (SPLITS + 1);

        wanted.epoch = i / (SPLITS + 1);
        wanted.views += at == 0 && wanted.epoch % 2;
        if (at == 0)
            memset(wanted.done, 0, sizeof wanted.done);
        else
            wanted.done[at - 1] = 1;
        if (at > 0)
            wanted.steps[i % WORKERS] = i;
    }
    assert_int_equal(wf_journal_open(wf_memdisk_disk(m), "/state", follow, &got, &j, NULL), WF_OK);
    assert_memory_equal(&wanted, &got, sizeof got);
    wf_journal_close(&j);
}

static void what_is_said_again_is_left_out(void **state)
{
    const uint32_t n = EPOCHS * (SPLITS + 1) * 4;
    wf_memdisk *m = wf_memdisk_new();
    state_of_job now = {0};
    wf_journal *j = NULL;
    size_t size, most = 0;

    (void)state;
    assert_int_equal(wf_journal_open(wf_memdisk_disk(m), "/state", follow, &now, &j, NULL), WF_OK);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(append_of_job(j, i, NULL), WF_OK);
        wf_memdisk_bytes(m, "/state/journal", &size);
        most = size > most ? size : most;
    }
    wf_journal_close(&j);
    assert_true(most < 300 << 10); /* all of it would be twice that */
    follows_to(m, n);
    follows_to(m, n); /* the one that opening has made shorter */
    wf_memdisk_bytes(m, "/state/journal", &size);
    assert_true(size < BOUND);
    wf_memdisk_free(&m);
}

/* Each call of the disk fails, and the power with it, while the file is made shorter. */
static void shortening_may_be_cut_short_at_any_call(void **state)
{
    const uint32_t n = EPOCHS * (SPLITS + 1);
    wf_memdisk *m = wf_memdisk_new();
    state_of_job now = {0};
    wf_journal *j = NULL;
    bool opened = false;

    (void)state;
    assert_int_equal(wf_journal_open(wf_memdisk_disk(m), "/state", follow, &now, &j, NULL), WF_OK);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(append_of_job(j, i, NULL), WF_OK);
    wf_journal_close(&j);
    for (uint64_t call = 1; !opened; call++) {
        for (uint64_t seed = 0; seed < 8; seed++) {
            wf_memdisk *image = wf_memdisk_copy(m);
            wf_status rc;

            wf_memdisk_fail(image, call, EIO, true);
            now = (state_of_job){0};
            rc = wf_journal_open(wf_memdisk_disk(image), "/state", follow, &now, &j, NULL);
            assert_true(rc == WF_OK || rc == WF_IO);
            opened = rc == WF_OK;
            wf_journal_close(&j);
            wf_memdisk_crash(image, seed);
            follows_to(image, n);
            wf_memdisk_free(&image);
        }
        assert_true(call < 100);
    }
    wf_memdisk_free(&m);
}

/* One call of the disk fails, and goes well the next time: the journal is open, and whole. */
static void a_journal_that_cannot_be_shortened_stays(void **state)
{
    const uint32_t n = EPOCHS * (SPLITS + 1);
    wf_memdisk *m = wf_memdisk_new();
    state_of_job now = {0};
    wf_journal *j = NULL;
    int went_on = 0;

    (void)state;
    assert_int_equal(wf_journal_open(wf_memdisk_disk(m), "/state", follow, &now, &j, NULL), WF_OK);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(append_of_job(j, i, NULL), WF_OK);
    wf_journal_close(&j);
    for (uint64_t call = 1; call < 100; call++) {
        wf_memdisk *image = wf_memdisk_copy(m);
        uint64_t before = wf_memdisk_calls(image);

        wf_memdisk_fail(image, call, ENOSPC, false);
        now = (state_of_job){0};
        if (wf_journal_open(wf_memdisk_disk(image), "/state", follow, &now, &j, NULL) == WF_OK) {
            wf_memdisk_fail(image, 0, 0, false);
            call = wf_memdisk_calls(image) - before < call ? 100 : call; /* none failed: the last */
            assert_int_equal(append_of_job(j, n, NULL), WF_OK);
            wf_journal_close(&j);
            wf_memdisk_crash(image, call);
            follows_to(image, n + 1);
            went_on++;
        }
        wf_memdisk_free(&image);
    }
    assert_true(went_on >= 3);
    wf_memdisk_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_journal_that_cannot_be_shortened_stays),
        cmocka_unit_test(what_was_appended_comes_back_in_order),
        cmocka_unit_test(a_torn_end_is_cut_off),
        cmocka_unit_test(a_flipped_byte_before_the_last_record_is_said),
        cmocka_unit_test(a_disk_that_cannot_be_read_is_not_an_empty_one),
        cmocka_unit_test(after_a_failed_append_nothing_is_taken),
        cmocka_unit_test(what_was_appended_survives_any_crash),
        cmocka_unit_test(what_is_said_again_is_left_out),
        cmocka_unit_test(shortening_may_be_cut_short_at_any_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
