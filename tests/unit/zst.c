/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/zst.c - data files through zstd: several frames, damage, and a disk that is full. */
#include "common/data/zst.h"
#include "common/base/size.h"
#include "tests/unit/datasets.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

enum { LARGE = 3 << 20 };

/* One frame of n bytes, with a checksum, behind the `at` bytes that are there; the size of all. */
static size_t pack(uint8_t *out, size_t room, size_t at, const void *data, size_t n)
{
    ZSTD_CCtx *z = ZSTD_createCCtx();
    size_t made;

    assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1)));
    made = ZSTD_compress2(z, out + at, room - at, data, n);
    assert_false(ZSTD_isError(made));
    ZSTD_freeCCtx(z);
    return at + made;
}

static void expect_content(const char *path, const void *data, size_t n)
{
    uint8_t *have = malloc(n + 1);
    wf_err err = {0};
    int fd = -1;

    if (wf_zst_open(path, &fd, &err) != WF_OK)
        fail_msg("%s", err.what);
    assert_int_equal(read(fd, have, n + 1), n);
    assert_memory_equal(have, data, n);
    close(fd);
    free(have);
}

static void all_frames_are_unpacked(void **state)
{
    const uint8_t skippable[] = {0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c'};
    uint8_t *data = malloc(LARGE), *packed = malloc(2 * LARGE);
    size_t n;

    (void)state;
    for (size_t i = 0; i < LARGE; i++)
        data[i] = (uint8_t)(i * i >> 7);
    n = pack(packed, 2 * LARGE, 0, data, LARGE);
    expect_content(test_write(&folder, "a.zst", packed, n), data, LARGE);
    n = pack(packed, 2 * LARGE, 0, data, 1000);
    memcpy(packed + n, skippable, sizeof skippable);
    n = pack(packed, 2 * LARGE, n + sizeof skippable, data + 1000, 0);
    n = pack(packed, 2 * LARGE, n, data + 1000, LARGE - 1000);
    expect_content(test_write(&folder, "a.zst", packed, n), data, LARGE);
    n = pack(packed, 2 * LARGE, 0, data, 0);
    expect_content(test_write(&folder, "a.zst", packed, n), data, 0);
    free(packed);
    free(data);
}

static void every_cut_and_change_is_refused(void **state)
{
    uint8_t data[400], packed[600], copy[600];
    size_t n;

    (void)state;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * i >> 3);
    n = pack(packed, sizeof packed, 0, data, sizeof data);
    for (size_t i = 0; i < 2 * n; i++) {
        uint8_t have[sizeof data + 1];
        wf_err err = {0};
        wf_status rc;
        int fd = -1;

        memcpy(copy, packed, n);
        if (i >= n)
            copy[i - n] ^= (uint8_t)(1 << i % 8);
        rc = wf_zst_open(test_write(&folder, "a.zst", copy, i < n ? i : n), &fd, &err);
        if (rc == WF_OK) { /* a bit that means nothing */
            assert_true(i >= n);
            assert_int_equal(read(fd, have, sizeof have), sizeof data);
            assert_memory_equal(have, data, sizeof data);
            close(fd);
            continue;
        }
        assert_int_equal(fd, -1);
        assert_true(rc == WF_INVALID || rc == WF_UNSUPPORTED);
        assert_non_null(strstr(err.what, "a.zst"));
    }
}

static void what_is_no_zstd_file_is_said(void **state)
{
    char name[PATH_MAX];
    wf_err err = {0};
    int fd = -1;

    (void)state;
    assert_int_equal(wf_zst_open(test_write(&folder, "a.zst", "a,b\n1,2\n", 8), &fd, &err),
                     WF_INVALID);
    assert_non_null(strstr(err.what, "does not hold zstd data"));
    assert_int_equal(wf_zst_open(test_path(&folder, "none.zst"), &fd, &err), WF_NOTFOUND);
    snprintf(name, sizeof name, "%s", test_path(&folder, "d.zst"));
    assert_int_equal(mkdir(name, 0700), 0);
    assert_int_equal(wf_zst_open(name, &fd, &err), WF_INVALID);
    assert_non_null(strstr(err.what, "is a folder"));
    rmdir(name);
}

static void a_full_disk_is_said(void **state)
{
    uint8_t *data = calloc(1, LARGE), packed[1000];
    size_t n = pack(packed, sizeof packed, 0, data, LARGE);
    struct rlimit limit, small;
    wf_err err = {0};
    int fd = -1;

    (void)state;
    test_write(&folder, "a.zst", packed, n);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = (struct rlimit){1 << 20, limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(wf_zst_open(test_path(&folder, "a.zst"), &fd, &err), WF_IO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_non_null(strstr(err.what, "a.zst: unpacking into "));
    assert_non_null(strstr(err.hint, "TMPDIR"));
    setenv("TMPDIR", "/nowhere/at/all", 1);
    assert_int_equal(wf_zst_open(test_path(&folder, "a.zst"), &fd, &err), WF_IO);
    assert_non_null(strstr(err.what, "a temporary file in /nowhere/at/all: No such file"));
    unsetenv("TMPDIR");
    free(data);
}

static void text_and_arrays_are_read(void **state)
{
    static const char *const columns[] = {"b"};
    const uint8_t idx[] = {0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9};
    const wf_field_spec field = {.name = "x", .columns = columns, .n_columns = 1, .want = WF_F32};
    const char *path;
    uint8_t packed[200];
    size_t n = pack(packed, sizeof packed, 0, "a,b\n1,2\n3,4\n", 12);
    wf_dataset *d = NULL;
    float values[2];

    (void)state;
    path = test_write(&folder, "t.csv.zst", packed, n);
    assert_int_equal(wf_dataset_open(&(wf_dataset_spec){.format = "csv",
                                                        .fields = &field,
                                                        .n_fields = 1,
                                                        .files = &path,
                                                        .n_files = 1,
                                                        .header = true},
                                     &d, NULL),
                     WF_OK);
    assert_int_equal(wf_dataset_gather(d, 0, (uint64_t[]){1, 0}, 2, values, NULL), WF_OK);
    assert_true(values[0] == 4 && values[1] == 2);
    wf_dataset_free(&d);
    n = pack(packed, sizeof packed, 0, idx, sizeof idx);
    path = test_write(&folder, "x-idx1-ubyte.zst", packed, n);
    assert_int_equal(open_one("idx", path, NULL, 0, WF_F32, &d, NULL), WF_OK);
    assert_int_equal(wf_dataset_gather(d, 0, (uint64_t[]){2, 0}, 2, values, NULL), WF_OK);
    assert_true(values[0] == 9 && values[1] == 7);
    wf_dataset_free(&d);
    n = pack(packed, sizeof packed, 0, idx, sizeof idx - 1);
    expect_refused("idx", test_write(&folder, "x.zst", packed, n), WF_INVALID, "cut short");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_frames_are_unpacked),
        cmocka_unit_test(every_cut_and_change_is_refused),
        cmocka_unit_test(what_is_no_zstd_file_is_said),
        cmocka_unit_test(a_full_disk_is_said),
        cmocka_unit_test(text_and_arrays_are_read),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
