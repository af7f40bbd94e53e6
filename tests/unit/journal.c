/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/journal.c - what was committed comes back; a torn end is cut off; anything else that
 * is wrong is reported, and never taken for an empty journal; a snapshot takes the log's place, or
 * does not, at whichever call the disk fails. */
#include "master/store/journal.h"
#include "common/base/bytes.h"
#include "common/base/crc32c.h"
#include "common/wire/header.h"
#include "tests/kit/memdisk.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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
    h->in_order &= record->view && (h->n == 1 || record->view->number == h->last + 1);
    h->last = record->view ? record->view->number : 0;
    return WF_OK;
}

static wf_status open_journal(wf_memdisk *m, heard *h, wf_journal **out, wf_err *err)
{
    *h = (heard){.in_order = true};
    return wf_journal_open(wf_memdisk_disk(m), "/state", 0, hear, h, out, err);
}

static wf_status gather(wf_journal *j, uint32_t number)
{
    Weft__Record record = WEFT__RECORD__INIT;
    Weft__View view = WEFT__VIEW__INIT;

    view.number = number;
    record.view = &view;
    return wf_journal_append(j, &record, NULL);
}

static wf_status append(wf_journal *j, uint32_t number)
{
    WF_TRY(gather(j, number));
    return wf_journal_commit(j, NULL);
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
        assert_non_null(strstr(err.hint, "weft recover"));
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

/* ---- group commit ---- */

static void what_gathers_is_one_write_and_one_sync(void **state)
{
    wf_memdisk *m = with_records(1);
    wf_journal *j = NULL;
    uint64_t calls;
    heard h;

    (void)state;
    assert_int_equal(open_journal(m, &h, &j, NULL), WF_OK);
    calls = wf_memdisk_calls(m);
    for (uint32_t i = 2; i <= 1000; i++)
        assert_int_equal(gather(j, i), WF_OK);
    assert_int_equal(wf_memdisk_calls(m), calls);
    assert_int_equal(wf_journal_durable(j), 0);
    assert_int_equal(wf_journal_commit(j, NULL), WF_OK);
    assert_int_equal(wf_memdisk_calls(m), calls + 2);
    assert_int_equal(wf_journal_durable(j), wf_journal_appended(j));
    wf_journal_close(&j);
    assert_int_equal(open_journal(m, &h, &j, NULL), WF_OK);
    assert_int_equal(h.n, 1000);
    assert_true(h.in_order);
    wf_journal_close(&j);
    wf_memdisk_free(&m);
}

/* What is appended while a batch is out is of the next one. */
static void a_batch_holds_what_was_there_when_it_left(void **state)
{
    wf_memdisk *m = wf_memdisk_new();
    wf_journal_batch *b = NULL, *second = NULL;
    wf_journal *j = NULL;
    heard h;

    (void)state;
    assert_int_equal(open_journal(m, &h, &j, NULL), WF_OK);
    assert_int_equal(gather(j, 1), WF_OK);
    assert_int_equal(wf_journal_take(j, &b, NULL), WF_OK);
    assert_int_equal(gather(j, 2), WF_OK);
    assert_int_equal(wf_journal_take(j, &second, NULL), WF_OK);
    assert_null(second);
    wf_journal_write(b);
    assert_int_equal(wf_journal_durable(j), 0);
    assert_int_equal(wf_journal_settle(j, &b, NULL), WF_OK);
    assert_int_equal(wf_journal_durable(j), 1);
    wf_memdisk_crash(m, 1);
    wf_journal_close(&j);
    assert_int_equal(open_journal(m, &h, &j, NULL), WF_OK);
    assert_int_equal(h.n, 1);
    wf_journal_close(&j);
    wf_memdisk_free(&m);
}

/* ---- snapshots ---- */

enum { MANY = 3000, LEAST = 1 << 10 };

static wf_status open_small(wf_memdisk *m, heard *h, wf_journal **out)
{
    *h = (heard){.in_order = true};
    return wf_journal_open(wf_memdisk_disk(m), "/state", LEAST, hear, h, out, NULL);
}

/* The state is the number of the last view, so a snapshot is that view. */
static wf_status append_with_snapshots(wf_journal *j, uint32_t number)
{
    WF_TRY(gather(j, number));
    if (wf_journal_wants_snapshot(j)) {
        wf_journal_begin_snapshot(j);
        WF_TRY(gather(j, number));
        wf_journal_end_snapshot(j, true);
    }
    return wf_journal_commit(j, NULL);
}

static void a_journal_grows_with_the_state_and_not_with_time(void **state)
{
    wf_memdisk *m = wf_memdisk_new();
    wf_journal *j = NULL;
    size_t size;
    heard h;

    (void)state;
    assert_int_equal(open_small(m, &h, &j), WF_OK);
    for (uint32_t i = 1; i <= MANY; i++) {
        assert_int_equal(append_with_snapshots(j, i), WF_OK);
        wf_memdisk_bytes(m, "/state/journal", &size);
        assert_true(size <= LEAST + 64);
    }
    assert_int_equal(wf_journal_durable(j), MANY);
    wf_journal_close(&j);
    assert_int_equal(open_small(m, &h, &j), WF_OK);
    assert_int_equal(h.last, MANY);
    assert_true(h.in_order);
    assert_true(h.n < 100);
    wf_journal_close(&j);
    wf_memdisk_free(&m);
}

/* Just before the next append a snapshot is due. */
static wf_memdisk *before_a_snapshot(uint32_t *next)
{
    wf_memdisk *m = wf_memdisk_new();
    wf_journal *j = NULL;
    uint32_t n = 0, turns = 0;
    heard h;

    assert_int_equal(open_small(m, &h, &j), WF_OK);
    do {
        assert_int_equal(gather(j, ++n), WF_OK);
        turns += wf_journal_wants_snapshot(j);
        if (turns < 2)
            assert_int_equal(append_with_snapshots(j, ++n), WF_OK);
    } while (turns < 2);
    wf_journal_close(&j); /* what was only gathered is lost, as with a crash */
    *next = n;
    return m;
}

static void holds_up_to(wf_memdisk *m, uint32_t least, uint32_t most)
{
    wf_journal *j = NULL;
    heard h;

    assert_int_equal(open_small(m, &h, &j), WF_OK);
    assert_true(h.in_order);
    assert_in_range(h.last, least, most);
    wf_journal_close(&j);
}

/* From each call of the disk on all fail, and then the power goes. */
static void a_crash_leaves_the_old_file_or_the_new(void **state)
{
    uint32_t next;
    wf_memdisk *m = before_a_snapshot(&next);
    bool whole = false;

    (void)state;
    for (uint64_t call = 1; !whole; call++) {
        for (uint64_t seed = 0; seed < 16; seed++) {
            wf_memdisk *image = wf_memdisk_copy(m);
            wf_journal *j = NULL;
            wf_status rc;
            heard h;

            assert_int_equal(open_small(image, &h, &j), WF_OK);
            wf_memdisk_fail(image, call, EIO, true);
            rc = append_with_snapshots(j, next);
            assert_true(rc == WF_OK || rc == WF_IO);
            whole = rc == WF_OK;
            wf_journal_close(&j);
            wf_memdisk_crash(image, seed);
            holds_up_to(image, whole ? next : next - 1, next);
            wf_memdisk_free(&image);
        }
        assert_true(call < 30);
    }
    wf_memdisk_free(&m);
}

/* One call of the disk fails and the next goes well: the journal takes the record, or it takes
 * nothing more. */
static void a_snapshot_that_fails_leaves_the_log(void **state)
{
    uint32_t next, went_on = 0;
    wf_memdisk *m = before_a_snapshot(&next);
    bool failed = true;

    (void)state;
    for (uint64_t call = 1; failed; call++) {
        wf_memdisk *image = wf_memdisk_copy(m);
        wf_journal *j = NULL;
        uint64_t before;
        heard h;

        assert_int_equal(open_small(image, &h, &j), WF_OK);
        before = wf_memdisk_calls(image);
        wf_memdisk_fail(image, call, ENOSPC, false);
        if (append_with_snapshots(j, next) == WF_OK) {
            failed = wf_memdisk_calls(image) - before >= call;
            wf_memdisk_fail(image, 0, 0, false);
            went_on += failed;
            assert_int_equal(append_with_snapshots(j, next + 1), WF_OK);
            wf_memdisk_crash(image, call);
            wf_journal_close(&j);
            holds_up_to(image, next + 1, next + 1);
        } else {
            wf_memdisk_fail(image, 0, 0, false);
            assert_int_equal(append_with_snapshots(j, next), WF_IO);
            wf_journal_close(&j);
            wf_memdisk_crash(image, call);
            holds_up_to(image, next - 1, next);
        }
        wf_memdisk_free(&image);
        assert_true(call < 30);
    }
    assert_true(went_on >= 3); /* making, writing and syncing the temporary file */
    wf_memdisk_free(&m);
}

/* ---- other files ---- */

static void add_old_frame(wf_bytes *to, uint32_t number)
{
    Weft__Record record = WEFT__RECORD__INIT;
    Weft__View view = WEFT__VIEW__INIT;
    uint8_t body[64], head[8];
    size_t n;

    view.number = number;
    record.view = &view;
    n = weft__record__pack(&record, body);
    wf_put_u32(head, (uint32_t)n);
    wf_put_u32(head + 4, wf_crc32c(0, body, n));
    wf_bytes_add(to, head, sizeof head);
    wf_bytes_add(to, body, n);
}

/* Older releases wrote one record in a frame. */
static void a_journal_of_an_older_release_is_read(void **state)
{
    wf_memdisk *m = with_records(0);
    wf_disk_file *f = NULL;
    wf_bytes old = {0};
    wf_journal *j = NULL;
    heard h;

    (void)state;
    for (uint32_t i = 1; i <= RECORDS; i++)
        add_old_frame(&old, i);
    assert_int_equal(wf_disk_open(wf_memdisk_disk(m), "/state/journal", WF_DISK_APPEND, &f, NULL),
                     WF_OK);
    assert_int_equal(wf_disk_write(f, old.data, old.size, NULL), WF_OK);
    wf_disk_drop(&f);
    wf_bytes_close(&old);
    assert_int_equal(open_journal(m, &h, &j, NULL), WF_OK);
    assert_int_equal(h.n, RECORDS);
    assert_int_equal(append(j, RECORDS + 1), WF_OK);
    wf_journal_close(&j);
    assert_int_equal(open_journal(m, &h, &j, NULL), WF_OK);
    assert_int_equal(h.n, RECORDS + 1);
    assert_true(h.in_order);
    wf_journal_close(&j);
    wf_memdisk_free(&m);
}

/* A disk with one endless file: one frame, again and again. It has no memory to keep it in. */
typedef struct endless {
    wf_disk base; /* first */
    wf_disk_file file;
    wf_bytes frame;
    uint64_t size;
    size_t longest; /* read at once */
} endless;

static wf_status endless_open(wf_disk *d, const char *path, wf_disk_mode mode, wf_disk_file **out,
                              wf_err *err)
{
    endless *e = (endless *)d;

    (void)path, (void)mode, (void)err;
    e->file.disk = d;
    *out = &e->file;
    return WF_OK;
}

static wf_status endless_read(wf_disk_file *f, uint64_t offset, void *data, size_t n, wf_err *err)
{
    endless *e = (endless *)f->disk;
    uint8_t *to = data;

    (void)err;
    e->longest = n > e->longest ? n : e->longest;
    while (n > 0) {
        size_t at = offset % e->frame.size, k = e->frame.size - at;

        k = k < n ? k : n;
        memcpy(to, e->frame.data + at, k);
        to += k;
        offset += k;
        n -= k;
    }
    return WF_OK;
}

static wf_status endless_size(wf_disk_file *f, uint64_t *bytes, wf_err *err)
{
    (void)err;
    *bytes = ((endless *)f->disk)->size;
    return WF_OK;
}

static wf_status endless_cut(wf_disk_file *f, uint64_t bytes, wf_err *err)
{
    (void)err;
    assert_int_equal(bytes, ((endless *)f->disk)->size);
    return WF_OK;
}

static wf_status endless_file(wf_disk_file *f, wf_err *err)
{
    (void)f, (void)err;
    return WF_OK;
}

static wf_status endless_path(wf_disk *d, const char *path, wf_err *err)
{
    (void)d, (void)path, (void)err;
    return WF_OK;
}

static wf_status count_bytes(void *arg, const Weft__Record *record, wf_err *err)
{
    uint64_t *bytes = arg;

    (void)err;
    *bytes += strlen(record->session);
    return WF_OK;
}

static void a_journal_of_any_size_opens_in_bounded_memory(void **state)
{
    static const wf_disk_ops ops = {.open = endless_open,
                                    .read = endless_read,
                                    .size = endless_size,
                                    .cut = endless_cut,
                                    .sync = endless_file,
                                    .close = endless_file,
                                    .make_dir = endless_path,
                                    .sync_dir = endless_path};
    const size_t frames = 1100, bytes = 1 << 20;
    Weft__Record record = WEFT__RECORD__INIT;
    char *text = calloc(1, bytes + 1);
    endless e = {.base = {&ops}};
    uint64_t heard_bytes = 0;
    wf_journal *j = NULL;
    uint8_t *to;
    size_t n;

    (void)state;
    assert_non_null(text);
    memset(text, 's', bytes);
    record.session = text;
    n = weft__record__get_packed_size(&record);
    to = wf_bytes_extend(&e.frame, 8 + n);
    assert_non_null(to);
    weft__record__pack(&record, to + 8);
    wf_put_u32(to, (uint32_t)n);
    wf_put_u32(to + 4, wf_crc32c(0, to + 8, n));
    e.size = frames * e.frame.size;
    assert_true(e.size > UINT64_C(1) << 30);
    assert_int_equal(wf_journal_open(&e.base, "/state", 0, count_bytes, &heard_bytes, &j, NULL),
                     WF_OK);
    assert_int_equal(heard_bytes, frames * bytes);
    assert_true(e.longest < 4 << 20);
    wf_journal_close(&j);
    wf_bytes_close(&e.frame);
    free(text);
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
        cmocka_unit_test(what_gathers_is_one_write_and_one_sync),
        cmocka_unit_test(a_batch_holds_what_was_there_when_it_left),
        cmocka_unit_test(a_journal_grows_with_the_state_and_not_with_time),
        cmocka_unit_test(a_crash_leaves_the_old_file_or_the_new),
        cmocka_unit_test(a_snapshot_that_fails_leaves_the_log),
        cmocka_unit_test(a_journal_of_an_older_release_is_read),
        cmocka_unit_test(a_journal_of_any_size_opens_in_bounded_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
