/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/reader.c - batches come in order, once, whole, whoever gathers them. */
#include "common/data/reader.h"
#include "common/data/shuffle.h"
#include "tests/unit/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RECORDS = 1000, SEED = 11 };

static test_folder folder;
static wf_dataset *data;

/* Record i: x is its number twice as i32 (read through a cast to i64), y its lowest byte. */
static int set_up(void **unused)
{
    static uint8_t x[12 + RECORDS * 8] = {0, 0, 12, 2, 0, 0, RECORDS >> 8, RECORDS & 255,
                                          0, 0, 0,  2};
    static uint8_t y[8 + RECORDS] = {0, 0, 8, 1, 0, 0, RECORDS >> 8, RECORDS & 255};
    char paths[2][PATH_MAX];
    wf_field_spec fields[] = {{.name = "x", .path = paths[0], .want = WF_I64},
                              {.name = "y", .path = paths[1]}};
    wf_dataset_spec spec = {.format = "idx", .fields = fields, .n_fields = 2};

    (void)unused;
    for (int i = 0; i < RECORDS; i++) {
        x[12 + 8 * i + 2] = x[12 + 8 * i + 6] = (uint8_t)(i >> 8);
        x[12 + 8 * i + 3] = x[12 + 8 * i + 7] = y[8 + i] = (uint8_t)i;
    }
    test_folder_make(&folder);
    strcpy(paths[0], test_write(&folder, "x", x, sizeof x));
    strcpy(paths[1], test_write(&folder, "y", y, sizeof y));
    return wf_dataset_open(&spec, &data, NULL) == WF_OK ? 0 : -1;
}

static int tear_down(void **unused)
{
    (void)unused;
    wf_dataset_free(&data);
    test_folder_remove(&folder);
    return 0;
}

static wf_data_reader *start(uint64_t batch, bool shuffle, uint32_t depth)
{
    wf_data_reader_spec spec = {
        .dataset = data, .batch = batch, .seed = SEED, .shuffle = shuffle, .depth = depth};
    wf_data_reader *r = NULL;

    assert_int_equal(wf_data_reader_new(&spec, &r, NULL), WF_OK);
    return r;
}

/* The last range first, and none of one size. */
static void share_backwards(void *pool, int64_t n, int64_t grain,
                            void (*fn)(void *arg, int64_t begin, int64_t end), void *arg)
{
    int *calls = pool;

    assert_true(grain > 0);
    ++*calls;
    if (n > 5)
        fn(arg, n - n / 5, n);
    if (n > 5)
        fn(arg, n / 2, n - n / 5);
    fn(arg, 0, n > 5 ? n / 2 : n);
}

/* ---- memory for a device ---- */

static int n_pinned;

static void *pin(const wf_device *d, size_t bytes)
{
    n_pinned++;
    return wf_device_alloc(d, bytes);
}

static void unpin(const wf_device *d, void *memory)
{
    n_pinned--;
    wf_device_free(d, memory);
}

static void *refuse(const wf_device *d, size_t bytes)
{
    (void)d, (void)bytes;
    return NULL;
}

static const wf_batch *next(wf_data_reader *r)
{
    const wf_batch *b;

    assert_int_equal(wf_data_reader_next(r, &b, NULL), WF_OK);
    return b;
}

/* Takes one batch, which must be number `index` of the range, and gives it back. */
static void take(wf_data_reader *r, bool shuffle, uint64_t epoch, uint64_t split, uint64_t first,
                 uint64_t end, uint64_t index, uint64_t batch)
{
    const wf_batch *b = next(r);
    uint64_t from = first + index * batch, n = end - from < batch ? end - from : batch;
    wf_shuffle order = wf_shuffle_of(SEED, epoch, RECORDS, shuffle);
    const int64_t *x;
    const uint8_t *y;

    assert_non_null(b);
    assert_int_equal(b->epoch, epoch);
    assert_int_equal(b->split, split);
    assert_int_equal(b->index, index);
    assert_int_equal(b->n, n);
    assert_int_equal(b->last, from + n == end);
    assert_int_equal(b->fields[0].rank, 2);
    assert_int_equal(b->fields[0].dims[0], n);
    assert_int_equal(b->fields[0].dims[1], 2);
    assert_int_equal(b->fields[0].dtype, WF_I64);
    assert_int_equal(b->fields[1].rank, 1);
    assert_int_equal((uintptr_t)b->fields[0].data % WF_BUF_ALIGN, 0);
    x = b->fields[0].data;
    y = b->fields[1].data;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t record = wf_shuffle_record(&order, from + i);

        assert_int_equal(x[2 * i], record);
        assert_int_equal(x[2 * i + 1], record);
        assert_int_equal(y[i], record & 255);
    }
    wf_data_reader_release(r, &b);
    assert_null(b);
}

static void batches_come_in_order_and_never_cross_a_split(void **unused)
{
    static const struct {
        uint64_t epoch, split, first, end, batches;
    } splits[] = {{0, 7, 0, 100, 4}, {0, 3, 100, 101, 1}, {1, 7, 0, 1000, 32}, {2, 9, 50, 114, 2}};

    (void)unused;
    for (uint32_t depth = 0; depth < 9; depth++)
        for (int shuffle = 0; shuffle < 2; shuffle++) {
            wf_data_reader *r = start(32, shuffle, depth);

            assert_null(next(r));
            for (int round = 0; round < 3; round++) {
                for (int s = 0; s < 4; s++)
                    assert_int_equal(wf_data_reader_open(r, splits[s].epoch, splits[s].split,
                                                         splits[s].first, splits[s].end, 0, NULL),
                                     WF_OK);
                for (int s = 0; s < 4; s++)
                    for (uint64_t i = 0; i < splits[s].batches; i++)
                        take(r, shuffle, splits[s].epoch, splits[s].split, splits[s].first,
                             splits[s].end, i, 32);
                assert_null(next(r));
            }
            assert_int_equal(wf_data_reader_given(r), 3 * 39);
            assert_in_range(wf_data_reader_late(r), 0, depth ? 3 * 39 : UINT32_MAX);
            wf_data_reader_free(&r);
            assert_null(r);
        }
}

static void a_split_that_was_begun_goes_on_where_it_was(void **unused)
{
    wf_data_reader *r = start(10, true, 2);

    (void)unused;
    assert_int_equal(wf_data_reader_open(r, 4, 1, 100, 145, 3, NULL), WF_OK);
    assert_int_equal(wf_data_reader_open(r, 4, 2, 100, 145, 5, NULL), WF_OK); /* all done */
    assert_int_equal(wf_data_reader_open(r, 4, 3, 100, 145, UINT64_MAX, NULL), WF_OK);
    assert_int_equal(wf_data_reader_open(r, 4, 4, 200, 200, 0, NULL), WF_OK); /* empty */
    assert_int_equal(wf_data_reader_open(r, 4, 5, 990, 1000, 0, NULL), WF_OK);
    take(r, true, 4, 1, 100, 145, 3, 10);
    take(r, true, 4, 1, 100, 145, 4, 10);
    take(r, true, 4, 5, 990, 1000, 0, 10);
    assert_null(next(r));
    wf_data_reader_free(&r);
}

static void cancelling_drops_what_is_queued_and_keeps_what_is_out(void **unused)
{
    (void)unused;
    for (uint32_t depth = 0; depth < 6; depth++) {
        wf_data_reader *r = start(16, false, depth);

        for (int round = 0; round < 50; round++) {
            const wf_batch *held;

            assert_int_equal(wf_data_reader_open(r, 0, 1, 0, 1000, 0, NULL), WF_OK);
            held = next(r);
            assert_non_null(held);
            wf_data_reader_cancel(r);
            assert_null(next(r));
            assert_int_equal(wf_data_reader_open(r, 0, 2, 500, 700, 0, NULL), WF_OK);
            take(r, false, 0, 2, 500, 700, 0, 16);
            assert_int_equal(((const int64_t *)held->fields[0].data)[30], 15);
            wf_data_reader_release(r, &held);
            take(r, false, 0, 2, 500, 700, 1, 16);
            wf_data_reader_cancel(r);
        }
        wf_data_reader_free(&r);
    }
}

static void batches_that_are_out_stay_as_they_are(void **unused)
{
    const wf_batch *held[WF_READER_HELD];
    wf_data_reader *r = start(8, false, 3);

    (void)unused;
    assert_int_equal(wf_data_reader_open(r, 0, 0, 0, 1000, 0, NULL), WF_OK);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < WF_READER_HELD; i++)
            held[i] = next(r);
        for (int i = 0; i < WF_READER_HELD; i++) {
            uint64_t first = (uint64_t)(round * WF_READER_HELD + i) * 8;

            assert_int_equal(((const int64_t *)held[i]->fields[0].data)[0], first);
            assert_int_equal(((const int64_t *)held[i]->fields[0].data)[15], first + 7);
        }
        for (int i = 0; i < WF_READER_HELD; i++)
            wf_data_reader_release(r, &held[(i + round) % WF_READER_HELD]);
    }
    wf_data_reader_free(&r);
}

static void many_splits_may_wait(void **unused)
{
    wf_data_reader *r = start(4, true, 4);

    (void)unused;
    for (uint64_t s = 0; s < 200; s++) {
        assert_int_equal(wf_data_reader_open(r, s, s, s, s + 9, 0, NULL), WF_OK);
        if (s >= 100) /* the queue never runs empty, and must not grow for ever */
            for (uint64_t i = 0; i < 3; i++)
                take(r, true, s - 100, s - 100, s - 100, s - 91, i, 4);
    }
    wf_data_reader_free(&r);
}

static void a_batch_beyond_all_bounds_is_the_whole_split(void **unused)
{
    wf_data_reader *r = start(UINT64_MAX, true, 2);

    (void)unused;
    assert_int_equal(wf_data_reader_open(r, 3, 1, 1, 1000, 0, NULL), WF_OK);
    assert_int_equal(wf_data_reader_open(r, 3, 2, 0, 1000, 1, NULL), WF_OK);
    take(r, true, 3, 1, 1, 1000, 0, UINT64_MAX);
    assert_null(next(r));
    wf_data_reader_free(&r);
}

static void a_thread_is_for_batches_that_are_worth_one(void **unused)
{
    (void)unused;
    assert_int_equal(wf_data_reader_depth_for(data, 32), 0);
    assert_int_equal(wf_data_reader_depth_for(data, 1 << 20), WF_READER_DEPTH);
    assert_int_equal(wf_data_reader_depth_for(data, UINT64_MAX), WF_READER_DEPTH);
}

static void what_cannot_be_read_is_refused(void **unused)
{
    wf_data_reader *r = start(4, true, 4), *none = NULL;
    wf_data_reader_spec spec = {.dataset = data, .batch = 0, .depth = 1};
    wf_err err = {0};

    (void)unused;
    assert_int_equal(wf_data_reader_open(r, 0, 5, 10, 1001, 0, &err), WF_INVALID);
    assert_non_null(strstr(err.what, "the data set has 1000"));
    assert_int_equal(wf_data_reader_open(r, 0, 0, 11, 10, 0, NULL), WF_INVALID);
    wf_data_reader_free(&r);
    wf_data_reader_free(&r);
    assert_int_equal(wf_data_reader_new(&spec, &none, NULL), WF_INVALID);
    spec.batch = 1;
    spec.depth = WF_READER_MAX_DEPTH + 1;
    assert_int_equal(wf_data_reader_new(&spec, &none, NULL), WF_INVALID);
    assert_null(none);
}

/* Of two fields, which lie in other memory where there is none of that. */
static void batches_for_a_device_are_pinned(void **state)
{
    wf_device d = wf_cpu;

    (void)state;
    d.host_free = unpin;
    for (int refused = 0; refused < 2; refused++) {
        wf_data_reader_spec spec = {
            .dataset = data, .batch = 7, .seed = SEED, .depth = 2, .device = &d};
        wf_data_reader *r = NULL;

        d.host_alloc = refused ? refuse : pin;
        assert_int_equal(wf_data_reader_new(&spec, &r, NULL), WF_OK);
        assert_int_equal(n_pinned, refused ? 0 : 2 * (2 + WF_READER_HELD + 1));
        assert_int_equal(wf_data_reader_open(r, 0, 0, 0, 14, 0, NULL), WF_OK);
        take(r, false, 0, 0, 0, 14, 0, 7);
        take(r, false, 0, 0, 0, 14, 1, 7);
        wf_data_reader_free(&r);
        assert_int_equal(n_pinned, 0);
    }
}

/* The records of a file in an order of their own; splits of one file have one order. */
static void an_order_may_be_of_the_records_of_a_file(void **unused)
{
    static const uint64_t files[][2] = {{0, 300}, {300, 600}, {600, 1000}};
    uint8_t seen[RECORDS] = {0};
    uint64_t first[2][300], n = 0;

    (void)unused;
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        wf_data_reader *r = start(32, shuffle, 2);
        uint64_t moved = 0;
        const wf_batch *b;

        for (int f = 0; f < 3; f++)
            for (uint64_t at = files[f][0]; at < files[f][1]; at += 100)
                assert_int_equal(wf_data_reader_open_within(r, 5, at / 100, at, at + 100, 0,
                                                            files[f][0], files[f][1], NULL),
                                 WF_OK);
        memset(seen, 0, sizeof seen);
        n = 0;
        while ((b = next(r))) {
            const uint64_t *file = files[b->split < 3 ? 0 : b->split < 6 ? 1 : 2];

            for (uint64_t i = 0; i < b->n; i++, n++) {
                uint64_t record = (uint64_t)((const int64_t *)b->fields[0].data)[2 * i];

                assert_true(record >= file[0] && record < file[1] && record == b->at[i]);
                seen[record]++;
                moved += record != n;
                if (n < 600)
                    first[n / 300][n % 300] = record - file[0];
            }
            wf_data_reader_release(r, &b);
        }
        for (int i = 0; i < RECORDS; i++)
            assert_int_equal(seen[i], 1);
        assert_true(shuffle ? moved > RECORDS * 9 / 10 : moved == 0);
        assert_true((memcmp(first[0], first[1], sizeof first[0]) != 0) == shuffle);
        assert_int_equal(wf_data_reader_open_within(r, 5, 0, 200, 301, 0, 0, 300, NULL),
                         WF_INVALID);
        assert_int_equal(wf_data_reader_open_within(r, 5, 0, 299, 310, 0, 300, 600, NULL),
                         WF_INVALID);
        assert_int_equal(wf_data_reader_open_within(r, 5, 0, 900, 910, 0, 900, 1001, NULL),
                         WF_INVALID);
        wf_data_reader_free(&r);
    }
}

static void threads_of_the_caller_share_a_batch(void **unused)
{
    int calls = 0;
    wf_data_reader_spec spec = {.dataset = data,
                                .batch = 32,
                                .seed = SEED,
                                .shuffle = true,
                                .threads = {&calls, share_backwards}};
    wf_data_reader *r = NULL;

    (void)unused;
    assert_int_equal(wf_data_reader_new(&spec, &r, NULL), WF_OK);
    assert_int_equal(wf_data_reader_open(r, 3, 1, 100, 199, 0, NULL), WF_OK);
    for (uint64_t i = 0; i < 4; i++)
        take(r, true, 3, 1, 100, 199, i, 32);
    assert_null(next(r));
    assert_int_equal(calls, 4);
    wf_data_reader_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_come_in_order_and_never_cross_a_split),
        cmocka_unit_test(a_split_that_was_begun_goes_on_where_it_was),
        cmocka_unit_test(cancelling_drops_what_is_queued_and_keeps_what_is_out),
        cmocka_unit_test(batches_that_are_out_stay_as_they_are),
        cmocka_unit_test(many_splits_may_wait),
        cmocka_unit_test(a_batch_beyond_all_bounds_is_the_whole_split),
        cmocka_unit_test(a_thread_is_for_batches_that_are_worth_one),
        cmocka_unit_test(what_cannot_be_read_is_refused),
        cmocka_unit_test(batches_for_a_device_are_pinned),
        cmocka_unit_test(threads_of_the_caller_share_a_batch),
        cmocka_unit_test(an_order_may_be_of_the_records_of_a_file),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
