/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/ckpt.c - a checkpoint is complete or absent, whatever the disk does. */
#include "ckpt_make.h"
#include "common/ckpt/initial.h"
#include "tests/kit/memdisk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DIR "/data/ckpt"
#define JOB "mlp"

static const wf_cut_id first_cut = {1, 1, 0xabc}, second_cut = {1, 2, 0xabc};

typedef struct heard {
    int n;
    char last[1024];
} heard;

static void hear(void *arg, uint64_t step, const char *sentence)
{
    heard *h = arg;

    (void)step;
    h->n++;
    snprintf(h->last, sizeof h->last, "%s", sentence);
}

static wf_memdisk *disk_with_first(void)
{
    wf_memdisk *m = wf_memdisk_new();
    wf_err err = {0};

    assert_non_null(m);
    if (make_ckpt(wf_memdisk_disk(m), DIR, JOB, "d1", first_cut, 100, 3, &err) != WF_OK)
        fail_msg("%s", err.what);
    return m;
}

/* The step of the newest that verifies, checked to the last value; 0 when there is none. */
static uint64_t newest(wf_memdisk *m, heard *h)
{
    wf_ckpt *c = NULL;
    wf_err err = {0};
    uint64_t step;

    if (wf_ckpt_newest(wf_memdisk_disk(m), DIR, JOB, "d1", UINT64_MAX, h ? hear : NULL, h, &c,
                       &err) != WF_OK)
        return 0;
    step = wf_ckpt_manifest(c)->global_step;
    assert_true(ckpt_is_of(c, step));
    wf_ckpt_close(&c);
    return step;
}

static void what_is_saved_is_read_back(void **state)
{
    wf_memdisk *m = disk_with_first();
    wf_ckpt *c = NULL;
    const wf_manifest *got;
    float values[8];
    wf_err err;

    (void)state;
    assert_int_equal(
        wf_ckpt_newest(wf_memdisk_disk(m), DIR, JOB, "d1", UINT64_MAX, NULL, NULL, &c, &err),
        WF_OK);
    assert_true(ckpt_is_of(c, 100));
    got = wf_ckpt_manifest(c);
    assert_string_equal(wf_ckpt_name(c), "step-00000100");
    assert_string_equal(got->rule, "adam");
    assert_true(got->options[0].value == 0.001);
    assert_true(got->seed == UINT64_MAX);
    assert_true(got->cut.chief == 0xabc);
    assert_true(got->clocks[0].incarnation == UINT64_C(0xfedcba9876543210));
    assert_true(got->ledger.evaluated);
    assert_int_equal(got->ledger.finished[1].begin, 200);
    assert_int_equal(got->ledger.open[0].next, 132);
    /* A range over the border of two slices, in two files. */
    assert_int_equal(wf_ckpt_read_range(c, "dense/kernel", "v", 7, 8, values, &err), WF_OK);
    for (uint64_t i = 0; i < 8; i++)
        assert_true(values[i] == value_at(100, 2, 7 + i));
    assert_int_equal(wf_ckpt_updates_at(wf_ckpt_variable_find(c, "dense/kernel"), 9), 100);
    assert_int_equal(wf_ckpt_updates_at(wf_ckpt_variable_find(c, "dense/kernel"), 10), 101);
    assert_int_equal(wf_ckpt_read_range(c, "dense/kernel", NULL, 20, 5, values, &err), WF_INVALID);
    assert_int_equal(wf_ckpt_read_range(c, "no", NULL, 0, 1, values, &err), WF_NOTFOUND);
    wf_ckpt_close(&c);
    wf_memdisk_free(&m);
}

static void another_graph_is_refused(void **state)
{
    wf_memdisk *m = disk_with_first();
    wf_ckpt *c = NULL;
    wf_err err;

    (void)state;
    assert_int_equal(
        wf_ckpt_newest(wf_memdisk_disk(m), DIR, JOB, "d2", UINT64_MAX, NULL, NULL, &c, &err),
        WF_MISMATCH);
    assert_string_equal(err.hint, "train it as a new run, without --resume");
    assert_int_equal(
        wf_ckpt_newest(wf_memdisk_disk(m), DIR, "other", "d1", UINT64_MAX, NULL, NULL, &c, &err),
        WF_NOTFOUND);
    assert_null(c);
    wf_memdisk_free(&m);
}

static void a_rolled_back_history_is_older(void **state)
{
    wf_memdisk *m = disk_with_first();
    wf_cut_id next = {2, 1, 0xdef}, again = {2, 2, 0xdef};
    wf_disk *d = wf_memdisk_disk(m);

    (void)state;
    assert_int_equal(make_ckpt(d, DIR, JOB, "d1", second_cut, 200, 0, NULL), WF_OK);
    assert_int_equal(make_ckpt(d, DIR, JOB, "d1", next, 150, 0, NULL), WF_OK);
    assert_int_equal(newest(m, NULL), 150);
    /* The same step on the new history takes the name of the old one. */
    assert_int_equal(make_ckpt(d, DIR, JOB, "d1", again, 200, 0, NULL), WF_OK);
    assert_int_equal(newest(m, NULL), 200);
    assert_int_equal(make_ckpt(d, DIR, JOB, "d1", second_cut, 200, 0, NULL), WF_EXISTS);
    assert_int_equal(newest(m, NULL), 200);
    wf_memdisk_free(&m);
}

static void keep_bounds_what_is_on_disk(void **state)
{
    wf_memdisk *m = disk_with_first();
    wf_arena *arena = wf_arena_new(0);
    wf_ckpt_entry *list;
    size_t n;

    (void)state;
    for (uint32_t i = 2; i < 8; i++)
        assert_int_equal(
            make_ckpt(wf_memdisk_disk(m), DIR, JOB, "d1", (wf_cut_id){1, i, 1}, 100 * i, 3, NULL),
            WF_OK);
    assert_int_equal(wf_ckpt_list(wf_memdisk_disk(m), DIR, JOB, arena, &list, &n, NULL), WF_OK);
    assert_int_equal(n, 3);
    assert_string_equal(list[0].name, "step-00000700");
    assert_string_equal(list[2].name, "step-00000500");
    assert_null(list[2].fault);
    wf_arena_free(&arena);
    wf_memdisk_free(&m);
}

static uint64_t calls_of_second(void)
{
    wf_memdisk *m = disk_with_first();
    uint64_t before = wf_memdisk_calls(m), calls;

    assert_int_equal(make_ckpt(wf_memdisk_disk(m), DIR, JOB, "d1", second_cut, 200, 1, NULL),
                     WF_OK);
    calls = wf_memdisk_calls(m) - before;
    wf_memdisk_free(&m);
    return calls;
}

static void check_after_crash(wf_memdisk *m, uint64_t call, uint64_t seed, wf_status done)
{
    uint64_t step = newest(m, NULL);

    if (step != 200 && (step != 100 || done == WF_OK))
        fail_msg("power lost at call %llu, image %llu: restored step %llu",
                 (unsigned long long)call, (unsigned long long)seed, (unsigned long long)step);
    assert_int_equal(wf_ckpt_sweep(wf_memdisk_disk(m), DIR, JOB, NULL), WF_OK);
    assert_int_equal(newest(m, NULL), step);
    /* Life goes on: the next checkpoint is made and found. */
    assert_int_equal(
        make_ckpt(wf_memdisk_disk(m), DIR, JOB, "d1", (wf_cut_id){2, 1, 9}, 300, 2, NULL), WF_OK);
    assert_int_equal(newest(m, NULL), 300);
}

static void every_crash_image_restores_a_complete_checkpoint(void **state)
{
    enum { IMAGES = 24 };
    uint64_t calls = calls_of_second();

    (void)state;
    for (uint64_t call = 1; call <= calls + 1; call++) {
        wf_memdisk *m = disk_with_first();
        wf_status done;

        wf_memdisk_fail(m, call, EIO, true);
        done = make_ckpt(wf_memdisk_disk(m), DIR, JOB, "d1", second_cut, 200, 1, NULL);
        for (uint64_t seed = 0; seed < IMAGES; seed++) {
            wf_memdisk *image = wf_memdisk_copy(m);

            wf_memdisk_crash(image, seed * 1000 + call);
            check_after_crash(image, call, seed, done);
            wf_memdisk_free(&image);
        }
        wf_memdisk_free(&m);
    }
}

/* And the power fails again while the folder is tidied. */
static void tidying_may_be_cut_short_at_any_call(void **state)
{
    uint64_t calls = calls_of_second();

    (void)state;
    for (uint64_t call = 1; call <= calls; call++) {
        for (uint64_t again = 1; again < 12; again++) {
            wf_memdisk *m = disk_with_first();
            uint64_t step;

            /* The same step, so that the first steps aside. */
            wf_memdisk_fail(m, call, EIO, true);
            (void)!make_ckpt(wf_memdisk_disk(m), DIR, JOB, "d1", second_cut, 100, 1, NULL);
            wf_memdisk_crash(m, call);
            wf_memdisk_fail(m, again, EIO, true);
            (void)!wf_ckpt_sweep(wf_memdisk_disk(m), DIR, JOB, NULL);
            wf_memdisk_crash(m, again);
            assert_int_equal(wf_ckpt_sweep(wf_memdisk_disk(m), DIR, JOB, NULL), WF_OK);
            step = newest(m, NULL);
            if (step != 100)
                fail_msg("power lost at call %llu, and at call %llu of tidying: step %llu",
                         (unsigned long long)call, (unsigned long long)again,
                         (unsigned long long)step);
            wf_memdisk_free(&m);
        }
    }
}

static void count_temporary(wf_memdisk *m, size_t *n)
{
    wf_arena *arena = wf_arena_new(0);
    const char *const *names;
    size_t all;

    *n = 0;
    assert_int_equal(wf_disk_list(wf_memdisk_disk(m), DIR "/" JOB, arena, &names, &all, NULL),
                     WF_OK);
    for (size_t i = 0; i < all; i++)
        *n += names[i][0] == '.';
    wf_arena_free(&arena);
}

/* One call fails, or all from it on until the folder is tidied (a disk that stays full). */
static void a_failing_disk_costs_this_checkpoint_only(void **state)
{
    uint64_t calls = calls_of_second();

    (void)state;
    for (uint64_t call = 1; call <= calls; call++) {
        for (int onwards = 0; onwards < 2; onwards++) {
            wf_memdisk *m = disk_with_first();
            wf_err err = {0};
            size_t left;
            wf_status rc;

            wf_memdisk_fail(m, call, ENOSPC, onwards);
            rc = make_ckpt(wf_memdisk_disk(m), DIR, JOB, "d1", second_cut, 200, 1, &err);
            wf_memdisk_fail(m, 0, 0, false);
            if (rc == WF_IO)
                assert_non_null(strstr(err.what, strerror(ENOSPC)));
            assert_true(newest(m, NULL) >= (rc == WF_OK ? 200u : 100u));
            count_temporary(m, &left);
            if (!onwards && left)
                fail_msg("call %llu failed and a temporary folder stayed",
                         (unsigned long long)call);
            wf_memdisk_free(&m);
        }
    }
}

static void every_flipped_byte_is_found(void **state)
{
    static const char *const files[] = {"manifest.json", "shard-00000-of-00002.safetensors",
                                        "shard-00001-of-00002.safetensors"};
    wf_memdisk *m = disk_with_first();

    (void)state;
    assert_int_equal(make_ckpt(wf_memdisk_disk(m), DIR, JOB, "d1", second_cut, 200, 0, NULL),
                     WF_OK);
    for (size_t f = 0; f < 3; f++) {
        char path[256];
        size_t size = 0;
        uint8_t *bytes;

        snprintf(path, sizeof path, "%s/%s/step-00000200/%s", DIR, JOB, files[f]);
        bytes = wf_memdisk_bytes(m, path, &size);
        assert_non_null(bytes);
        for (size_t i = 0; i < size; i++) {
            heard h = {0};

            bytes[i] ^= (uint8_t)(1u << (i % 8));
            if (newest(m, &h) != 100 || h.n != 1 ||
                !strstr(h.last, "step-00000200 passed over: ") || !strstr(h.last, files[f]))
                fail_msg("byte %zu of %s was spoilt and read (%s)", i, files[f], h.last);
            bytes[i] ^= (uint8_t)(1u << (i % 8));
        }
    }
    assert_int_equal(newest(m, NULL), 200);
    wf_memdisk_free(&m);
}

static void every_cut_short_file_is_passed_over(void **state)
{
    static const char *const files[] = {"manifest.json", "shard-00000-of-00002.safetensors"};

    (void)state;
    for (size_t f = 0; f < 2; f++) {
        wf_memdisk *m = disk_with_first();
        wf_disk_file *file = NULL;
        char path[256];
        uint64_t size;

        assert_int_equal(make_ckpt(wf_memdisk_disk(m), DIR, JOB, "d1", second_cut, 200, 0, NULL),
                         WF_OK);
        snprintf(path, sizeof path, "%s/%s/step-00000200/%s", DIR, JOB, files[f]);
        assert_int_equal(wf_disk_open(wf_memdisk_disk(m), path, WF_DISK_APPEND, &file, NULL),
                         WF_OK);
        assert_int_equal(wf_disk_size(file, &size, NULL), WF_OK);
        while (size-- > 0) {
            heard h = {0};

            assert_int_equal(wf_disk_cut(file, size, NULL), WF_OK);
            assert_int_equal(newest(m, &h), 100);
            assert_int_equal(h.n, 1);
        }
        wf_disk_drop(&file);
        assert_int_equal(wf_disk_remove(wf_memdisk_disk(m), path, NULL), WF_OK);
        assert_int_equal(newest(m, NULL), 100);
        wf_memdisk_free(&m);
    }
}

static void shards_of_two_checkpoints_do_not_mix(void **state)
{
    static const char name[] = "shard-00000-of-00002.safetensors";
    wf_memdisk *m = disk_with_first();
    wf_disk *d = wf_memdisk_disk(m);
    wf_ckpt *c = NULL;
    wf_err err = {0};

    (void)state;
    assert_int_equal(make_ckpt(d, DIR, JOB, "d1", second_cut, 200, 0, NULL), WF_OK);
    assert_int_equal(wf_disk_rename(d,
                                    DIR "/" JOB "/step-00000100/shard-00000-of-00002.safetensors",
                                    DIR "/" JOB "/step-00000100/x", NULL),
                     WF_OK);
    {
        char path[256];
        wf_bytes bytes = {0};

        snprintf(path, sizeof path, "%s/%s/step-00000200/%s", DIR, JOB, name);
        assert_int_equal(wf_disk_read_all(d, path, 1 << 20, &bytes, NULL), WF_OK);
        snprintf(path, sizeof path, "%s/%s/step-00000100/%s", DIR, JOB, name);
        assert_int_equal(wf_disk_replace(d, path, bytes.data, bytes.size, NULL), WF_OK);
        wf_bytes_close(&bytes);
    }
    assert_int_equal(wf_ckpt_open(d, DIR, JOB, 100, false, &c, &err), WF_CORRUPT);
    assert_non_null(strstr(err.what, "belongs to another checkpoint"));
    wf_memdisk_free(&m);
}

/* A person copied 200 over 100, and gave 300 the name 400. */
static void a_folder_under_another_number_is_no_checkpoint(void **state)
{
    wf_memdisk *m = disk_with_first();
    wf_disk *d = wf_memdisk_disk(m);
    heard h = {0};
    wf_ckpt *c = NULL;
    wf_err err = {0};

    (void)state;
    assert_int_equal(make_ckpt(d, DIR, JOB, "d1", second_cut, 200, 0, NULL), WF_OK);
    assert_int_equal(
        wf_disk_rename(d, DIR "/" JOB "/step-00000200", DIR "/" JOB "/step-00000400", NULL), WF_OK);
    assert_int_equal(newest(m, &h), 100);
    assert_int_equal(h.n, 1);
    assert_non_null(strstr(h.last, "step-00000400 passed over: its manifest is of step 200"));
    assert_int_equal(wf_ckpt_open(d, DIR, JOB, 400, false, &c, &err), WF_MISMATCH);
    assert_int_equal(wf_ckpt_open(d, DIR, JOB, 200, false, &c, &err), WF_NOTFOUND);
    assert_int_equal(wf_ckpt_gc(d, DIR, JOB, 1, 0, &err), WF_OK);
    assert_true(wf_disk_exists(d, DIR "/" JOB "/step-00000400/manifest.json"));
    wf_memdisk_free(&m);
}

/* The first values of [2, 3] and of nothing, as a master writes them. */
static void write_initial(wf_disk *d)
{
    float values[6] = {1, 2, 3, 4, 5, 6};
    const int64_t dims[] = {2, 3}, none[] = {0};
    wf_shard_tensor t[] = {{.name = "w", .dtype = WF_F32, .rank = 2, .dims = {2, 3}},
                           {.name = "e", .dtype = WF_F32, .rank = 1, .dims = {0}}};
    wf_tensor *w = NULL, *e = NULL;
    char sum[WF_SUM_TEXT], of_file[WF_SUM_TEXT];
    wf_shard_meta meta[] = {{"job", JOB}, {"digest", "d1"}, {WF_INITIAL_SUM, sum}};
    wf_shard_writer *writer = NULL;
    uint64_t bytes;

    assert_int_equal(wf_tensor_over(WF_F32, 2, dims, values, &w, NULL), WF_OK);
    assert_int_equal(wf_tensor_over(WF_F32, 1, none, values, &e, NULL), WF_OK);
    assert_int_equal(wf_initial_sum(JOB, "d1", 2, t, (const wf_tensor *const[]){w, e}, sum, NULL),
                     WF_OK);
    assert_int_equal(wf_disk_make_dirs(d, DIR "/" JOB, NULL), WF_OK);
    assert_int_equal(
        wf_shard_create(d, DIR "/" JOB "/" WF_INITIAL_NAME, t, 2, meta, 3, &writer, NULL), WF_OK);
    assert_int_equal(wf_shard_write(writer, values, sizeof values, NULL), WF_OK);
    assert_int_equal(wf_shard_finish(&writer, &bytes, of_file, NULL), WF_OK);
    wf_tensor_free(&w);
    wf_tensor_free(&e);
}

/* Makes /a/b/c with the n-th call of the disk failing, and again without; then the power goes.
 * Whether the disk was called as often. */
static bool make_twice(uint64_t n, uint64_t seed)
{
    static const char *const folders[] = {"/a", "/a/b", "/a/b/c"};
    wf_memdisk *m = wf_memdisk_new();
    wf_disk *d = wf_memdisk_disk(m);
    wf_status rc;
    bool failed;

    wf_memdisk_fail(m, n, EIO, false);
    rc = wf_disk_make_dirs(d, folders[2], NULL);
    failed = wf_memdisk_calls(m) >= n;
    assert_true(rc == WF_OK || failed);
    wf_memdisk_fail(m, 0, 0, false);
    assert_int_equal(wf_disk_make_dirs(d, folders[2], NULL), WF_OK);
    wf_memdisk_crash(m, seed);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        assert_true(wf_disk_exists(d, folders[i]));
    wf_memdisk_free(&m);
    return failed;
}

/* Whoever finds a folder makes it durable: who made it may have failed, or ended, before. */
static void folders_stay_whoever_made_them(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 16; seed++)
        for (uint64_t n = 1; make_twice(n, seed); n++)
            ;
}

static void every_flipped_byte_of_first_values_is_found(void **state)
{
    wf_memdisk *m = wf_memdisk_new();
    wf_disk *d = wf_memdisk_disk(m);
    size_t size = 0;
    bool has_sum = false;
    uint8_t *bytes;
    wf_err err = {0};

    (void)state;
    assert_int_equal(wf_initial_verify(d, DIR, JOB, &has_sum, &err), WF_NOTFOUND);
    write_initial(d);
    assert_int_equal(wf_initial_verify(d, DIR, JOB, &has_sum, &err), WF_OK);
    assert_true(has_sum);
    bytes = wf_memdisk_bytes(m, DIR "/" JOB "/" WF_INITIAL_NAME, &size);
    for (size_t i = 0; i < size; i++) {
        bytes[i] ^= 4;
        if (wf_initial_verify(d, DIR, JOB, &has_sum, &err) == WF_OK && has_sum)
            fail_msg("byte %zu of %zu", i, size);
        bytes[i] ^= 4;
    }
    wf_memdisk_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_saved_is_read_back),
        cmocka_unit_test(another_graph_is_refused),
        cmocka_unit_test(a_rolled_back_history_is_older),
        cmocka_unit_test(keep_bounds_what_is_on_disk),
        cmocka_unit_test(every_crash_image_restores_a_complete_checkpoint),
        cmocka_unit_test(tidying_may_be_cut_short_at_any_call),
        cmocka_unit_test(a_failing_disk_costs_this_checkpoint_only),
        cmocka_unit_test(every_flipped_byte_is_found),
        cmocka_unit_test(every_cut_short_file_is_passed_over),
        cmocka_unit_test(shards_of_two_checkpoints_do_not_mix),
        cmocka_unit_test(a_folder_under_another_number_is_no_checkpoint),
        cmocka_unit_test(folders_stay_whoever_made_them),
        cmocka_unit_test(every_flipped_byte_of_first_values_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
