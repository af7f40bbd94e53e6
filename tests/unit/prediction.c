/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/prediction.c - a prediction comes to the same file whatever happens to the disk of its
 * parts, and wherever it is interrupted. */
#include "common/session/prediction.h"
#include "common/base/file.h"
#include "common/base/size.h"
#include "tests/kit/memdisk.h"
#include "tests/unit/prediction_make.h"

#include <errno.h>
#include <inttypes.h>

static int set_up(void **unused)
{
    wf_err err = {0};

    (void)unused;
    test_folder_make(&folder);
    write_model();
    write_records(RECORDS, -8);
    assert_ok(wf_pool_new(1, &pool, &err), err);
    return 0;
}

static int tear_down(void **unused)
{
    (void)unused;
    wf_pool_free(&pool);
    test_folder_remove(&folder);
    return 0;
}

static wf_prediction *open_on(wf_memdisk *m, const char *out)
{
    const wf_prediction_ask ask = ask_for(out);
    wf_prediction *p = NULL;
    wf_err err = {0};

    assert_ok(wf_prediction_open(
                  &ask, &(wf_prediction_how){.pool = pool, .disk = wf_memdisk_disk(m)}, &p, &err),
              err);
    assert_int_equal(wf_prediction_records(p), RECORDS);
    assert_int_equal(wf_prediction_splits(p), SPLITS);
    return p;
}

static void count(void *arg, const char *file, wf_dtype dtype, uint32_t rank, const int64_t dims[])
{
    (void)file, (void)dtype, (void)rank;
    assert_int_equal(dims[0], RECORDS);
    ++*(int *)arg;
}

/* All of it, as a process does it. */
static wf_status predict(wf_memdisk *m, const char *out, uint64_t *done, wf_err *err)
{
    wf_prediction *p = open_on(m, out);
    wf_prediction_found found = {0};
    int files = 0;
    wf_status rc = wf_prediction_begin(p, &found, err);

    for (uint64_t i = 0; rc == WF_OK && i < SPLITS; i++)
        rc = wf_prediction_split(p, i, err);
    if (rc == WF_OK)
        rc = wf_prediction_join(p, count, &files, err);
    if (rc == WF_OK)
        assert_int_equal(files, strstr(out, ".csv") ? 1 : 2);
    if (done)
        *done = found.done;
    wf_prediction_free(&p);
    return rc;
}

/* What stands in OUT, of all its files. */
static void read_out(wf_memdisk *m, const char *out, wf_bytes *to)
{
    char path[PATH_MAX];
    const char *const *list = NULL;
    wf_arena *a = wf_arena_new(0);
    wf_err err = {0};
    size_t n = 0;

    wf_bytes_clear(to);
    if (strstr(out, ".csv")) {
        assert_ok(wf_disk_read_all(wf_memdisk_disk(m), out, 1 << 20, to, &err), err);
    } else {
        assert_ok(wf_disk_list(wf_memdisk_disk(m), out, a, &list, &n, &err), err);
        assert_int_equal(n, 2);
        for (size_t i = 0; i < n; i++) {
            wf_bytes one = {0};

            snprintf(path, sizeof path, "%s/%s", out, list[i]);
            assert_ok(wf_disk_read_all(wf_memdisk_disk(m), path, 1 << 20, &one, &err), err);
            wf_bytes_add(to, one.data, one.size);
            wf_bytes_close(&one);
        }
    }
    wf_arena_free(&a);
}

static void undisturbed(const char *out, wf_bytes *to)
{
    wf_memdisk *m = wf_memdisk_new();
    wf_err err = {0};

    assert_ok(predict(m, out, NULL, &err), err);
    read_out(m, out, to);
    wf_memdisk_free(&m);
}

static void outputs_are_those_of_the_records(void **unused)
{
    char text[4096] = "", row[128];
    wf_bytes got = {0};
    size_t head;

    (void)unused;
    undisturbed("/out.csv", &got);
    head = strcspn(wf_bytes_str(&got), "\n") + 1;
    for (int i = 0; i < RECORDS; i++) {
        float v[3];

        for (int k = 0; k < 3; k++)
            v[k] = -8 + (float)i * 1.5f - (float)(k * 10);
        snprintf(row, sizeof row, "%.9g,%.9g,%.9g,%.9g,%.9g,%.9g\n", v[0] < 0 ? 0. : (double)v[0],
                 v[1] < 0 ? 0. : (double)v[1], v[2] < 0 ? 0. : (double)v[2], 2. * (double)v[0],
                 2. * (double)v[1], 2. * (double)v[2]);
        strcat(text, row);
    }
    assert_string_equal(wf_bytes_str(&got) + head, text);
    wf_bytes_close(&got);
}

/* Every call of the disk fails once, or from there on; then the power goes. */
static void whatever_fails_the_next_process_ends_it(void **state)
{
    const char *out = *state;
    wf_bytes want = {0}, got = {0};
    bool failed = true;

    undisturbed(out, &want);
    for (uint64_t at = 1; failed; at++)
        for (int how = 0; how < 3; how++) {
            wf_memdisk *m = wf_memdisk_new();
            wf_err err = {0};

            wf_memdisk_fail(m, at, how == 1 ? ENOSPC : EIO, how > 0);
            failed = predict(m, out, NULL, &err) != WF_OK;
            wf_memdisk_fail(m, 0, 0, false);
            if (how == 2)
                wf_memdisk_crash(m, at);
            assert_ok(predict(m, out, NULL, &err), err);
            read_out(m, out, &got);
            if (got.size != want.size || memcmp(got.data, want.data, got.size) != 0)
                fail_msg("call %d fails, and the result is another", (int)at);
            assert_false(wf_disk_exists(wf_memdisk_disk(m), "/out.parts"));
            wf_memdisk_free(&m);
        }
    wf_bytes_close(&want);
    wf_bytes_close(&got);
}

static void what_is_done_outlives_the_power(void **state)
{
    const char *out = *state;
    wf_bytes want = {0}, got = {0};

    undisturbed(out, &want);
    for (uint64_t seed = 0; seed < 20; seed++) {
        wf_memdisk *m = wf_memdisk_new();
        wf_err err = {0};

        assert_ok(predict(m, out, NULL, &err), err);
        wf_memdisk_crash(m, seed);
        read_out(m, out, &got);
        assert_int_equal(got.size, want.size);
        assert_memory_equal(got.data, want.data, want.size);
        wf_memdisk_free(&m);
    }
    wf_bytes_close(&want);
    wf_bytes_close(&got);
}

static void splits_that_are_there_are_not_computed_again(void **unused)
{
    wf_memdisk *m = wf_memdisk_new();
    wf_prediction *p = open_on(m, "/out"), *other;
    wf_prediction_found found;
    uint64_t done = 0;
    wf_err err = {0};
    char path[PATH_MAX];
    size_t size;

    (void)unused;
    assert_ok(wf_prediction_begin(p, &found, &err), err);
    assert_false(found.other || found.done);
    for (uint64_t i = 1; i < 3; i++)
        assert_ok(wf_prediction_split(p, i, &err), err);
    other = open_on(m, "/out"); /* another process makes the same parts */
    assert_ok(wf_prediction_split(other, 1, &err), err);
    assert_ok(wf_prediction_split(other, 3, &err), err);
    wf_prediction_free(&other);
    assert_false(wf_prediction_has(p, 0));
    assert_true(wf_prediction_has(p, 3));
    snprintf(path, sizeof path, "/out.parts/part-%016" PRIx64 "-00000002.0", wf_prediction_tag(p));
    wf_memdisk_bytes(m, path, &size)[0] ^= 1;
    assert_false(wf_prediction_has(p, 2));
    wf_prediction_free(&p);
    assert_ok(predict(m, "/out", &done, &err), err);
    assert_int_equal(done, 2); /* 1 and 3 */
    wf_memdisk_free(&m);
}

static void another_request_begins_anew(void **unused)
{
    wf_memdisk *m = wf_memdisk_new();
    wf_prediction *p = open_on(m, "/out");
    wf_prediction_found found;
    wf_err err = {0};

    (void)unused;
    assert_ok(wf_prediction_begin(p, &found, &err), err);
    assert_ok(wf_prediction_split(p, 0, &err), err);
    wf_prediction_free(&p);
    write_records(RECORDS, -7);
    p = open_on(m, "/out");
    assert_ok(wf_prediction_begin(p, &found, &err), err);
    assert_true(found.other && !found.done);
    assert_false(wf_prediction_has(p, 0));
    wf_prediction_free(&p);
    write_records(RECORDS, -8);
    wf_memdisk_free(&m);
}

static void what_is_no_folder_of_parts_stays(void **unused)
{
    wf_memdisk *m = wf_memdisk_new();
    wf_prediction *p = open_on(m, "/out");
    wf_prediction_found found;
    wf_err err = {0};

    (void)unused;
    assert_ok(wf_disk_make_dirs(wf_memdisk_disk(m), "/out.parts", &err), err);
    assert_ok(wf_disk_replace(wf_memdisk_disk(m), "/out.parts/mine", "1", 1, &err), err);
    assert_int_equal(wf_prediction_begin(p, &found, &err), WF_EXISTS);
    assert_says(err, "/out.parts is needed for parts");
    assert_true(wf_disk_exists(wf_memdisk_disk(m), "/out.parts/mine"));
    wf_prediction_free(&p);
    wf_memdisk_free(&m);
}

static void a_request_is_read_back(void **unused)
{
    wf_memdisk *m = wf_memdisk_new();
    wf_prediction *p = open_on(m, "/out"), *again = NULL;
    wf_arena *a = wf_arena_new(0);
    wf_bytes text = {0}, second = {0};
    wf_prediction_ask ask;
    wf_err err = {0};

    (void)unused;
    assert_ok(wf_prediction_write(p, &text, &err), err);
    assert_true(wf_prediction_is(wf_bytes_str(&text)));
    assert_false(wf_prediction_is("job: digits\n"));
    assert_ok(wf_prediction_read(wf_bytes_str(&text), text.size, a, &ask, &err), err);
    assert_ok(wf_prediction_open(&ask,
                                 &(wf_prediction_how){.pool = pool, .disk = wf_memdisk_disk(m)},
                                 &again, &err),
              err);
    assert_ok(wf_prediction_write(again, &second, &err), err);
    assert_string_equal(wf_bytes_str(&text), wf_bytes_str(&second));
    wf_prediction_free(&again);
    ask.records++;
    assert_int_equal(
        wf_prediction_open(&ask, &(wf_prediction_how){.pool = pool, .disk = wf_memdisk_disk(m)},
                           &again, &err),
        WF_INVALID);
    assert_says(err, "23 records here, and 24 where");
    for (size_t n = 0; n < text.size; n++) /* cut anywhere */
        assert_int_not_equal(wf_prediction_read(wf_bytes_str(&text), n, a, &ask, &err), WF_OK);
    for (size_t i = 0; i < text.size; i++) { /* and spoilt: it is refused or is a request */
        text.data[i] ^= 4;
        if (wf_prediction_read(wf_bytes_str(&text), text.size, a, &ask, &err) == WF_OK)
            assert_true(ask.n_inputs <= 1 && ask.batch && ask.split_records && ask.out[0] == '/');
        text.data[i] ^= 4;
    }
    wf_bytes_close(&text);
    wf_bytes_close(&second);
    wf_arena_free(&a);
    wf_prediction_free(&p);
    wf_memdisk_free(&m);
}

/* Its runs of records, as whoever deals splits reads them. */
static void runs_near_hosts_are_read_back(void **unused)
{
    static const char *const hosts[] = {"h1", "h2", "h1"};
    char any[PATH_MAX];
    const wf_prediction_hosts rows[] = {
        {any, hosts, 3}, {"/elsewhere/*", hosts, 1}, {"*", hosts, 1}};
    wf_prediction_ask ask = ask_for("/out"), read;
    wf_memdisk *m = wf_memdisk_new();
    wf_prediction *p = NULL, *plain = open_on(m, "/out");
    wf_arena *a = wf_arena_new(0);
    wf_bytes text = {0};
    wf_err err = {0};

    (void)unused;
    snprintf(any, sizeof any, "%s/*", folder.path);
    for (size_t i = 1; i < WF_COUNT(rows); i++) { /* a pattern of no file */
        ask.hosts = &rows[i];
        ask.n_hosts = 1;
        assert_int_equal(
            wf_prediction_open(&ask, &(wf_prediction_how){.pool = pool, .disk = wf_memdisk_disk(m)},
                               &p, &err),
            WF_USAGE);
        wf_prediction_free(&p);
    }
    ask.hosts = rows;
    ask.n_hosts = 1;
    assert_ok(wf_prediction_open(
                  &ask, &(wf_prediction_how){.pool = pool, .disk = wf_memdisk_disk(m)}, &p, &err),
              err);
    assert_true(wf_prediction_tag(p) == wf_prediction_tag(plain)); /* its outputs are the same */
    assert_ok(wf_prediction_write(p, &text, &err), err);
    assert_ok(wf_prediction_read(wf_bytes_str(&text), text.size, a, &read, &err), err);
    assert_int_equal(read.n_near, 1);
    assert_int_equal(read.near[0].records, RECORDS);
    assert_int_equal(read.near[0].n_hosts, 2);
    assert_string_equal(read.near[0].hosts[0], "h1");
    assert_string_equal(read.near[0].hosts[1], "h2");
    for (size_t i = 0; i < text.size; i++) { /* spoilt: it is refused or is a request */
        text.data[i] ^= 4;
        if (wf_prediction_read(wf_bytes_str(&text), text.size, a, &read, &err) == WF_OK)
            for (size_t k = 0; k < read.n_near; k++)
                assert_true(read.near[k].records > 0 && read.near[k].n_hosts <= 64);
        text.data[i] ^= 4;
    }
    wf_bytes_close(&text);
    wf_arena_free(&a);
    wf_prediction_free(&p);
    wf_prediction_free(&plain);
    wf_memdisk_free(&m);
}

/* In place of the right list. */
static void runs_that_cannot_be_are_refused(void **unused)
{
    static const char *const lists[] = {
        "{}",
        "[1]",
        "[{\"records\": 0, \"hosts\": []}]",
        "[{\"records\": -5, \"hosts\": []}]",
        "[{\"records\": 5}]",
        "[{\"records\": 5, \"hosts\": \"h\"}]",
        "[{\"records\": 5, \"hosts\": [\"\"]}]",
        "[{\"records\": 5, \"hosts\": [7]}]",
        "[{\"hosts\": [\"h\"]}]",
    };
    wf_memdisk *m = wf_memdisk_new();
    wf_prediction *p = open_on(m, "/out");
    wf_arena *a = wf_arena_new(0);
    wf_bytes text = {0};
    wf_prediction_ask read;
    wf_err err = {0};

    (void)unused;
    assert_ok(wf_prediction_write(p, &text, &err), err);
    for (size_t i = 0; i < WF_COUNT(lists); i++) {
        char *spoilt = wf_arena_printf(a, "%.*s, \"near\": %s}", (int)text.size - 1,
                                       wf_bytes_str(&text), lists[i]);

        assert_int_equal(wf_prediction_read(spoilt, strlen(spoilt), a, &read, &err), WF_INVALID);
        assert_says(err, "without a right \"near\"");
    }
    wf_bytes_close(&text);
    wf_arena_free(&a);
    wf_prediction_free(&p);
    wf_memdisk_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_are_those_of_the_records),
        cmocka_unit_test_prestate(whatever_fails_the_next_process_ends_it, (char *)"/out"),
        cmocka_unit_test_prestate(whatever_fails_the_next_process_ends_it, (char *)"/out.csv"),
        cmocka_unit_test_prestate(what_is_done_outlives_the_power, (char *)"/out"),
        cmocka_unit_test_prestate(what_is_done_outlives_the_power, (char *)"/out.csv"),
        cmocka_unit_test(splits_that_are_there_are_not_computed_again),
        cmocka_unit_test(another_request_begins_anew),
        cmocka_unit_test(what_is_no_folder_of_parts_stays),
        cmocka_unit_test(a_request_is_read_back),
        cmocka_unit_test(runs_near_hosts_are_read_back),
        cmocka_unit_test(runs_that_cannot_be_are_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
