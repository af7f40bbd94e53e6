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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_appended_comes_back_in_order),
        cmocka_unit_test(a_torn_end_is_cut_off),
        cmocka_unit_test(a_flipped_byte_before_the_last_record_is_said),
        cmocka_unit_test(a_disk_that_cannot_be_read_is_not_an_empty_one),
        cmocka_unit_test(after_a_failed_append_nothing_is_taken),
        cmocka_unit_test(what_was_appended_survives_any_crash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
