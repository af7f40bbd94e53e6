/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/npz.c - arrays out of zip files, several files to a field, and what such files may not
 * hold. Files are written by minizip's other half; numpy's own are read by tests/cluster. */
#include "common/base/arena.h"
#include "common/data/formats.h"
#include "tests/unit/datasets.h"

#include <stdio.h>
#include <stdlib.h>
#include <zip.h>

enum { N = 6 };
static const int32_t values[N] = {3, 1, 4, 1, 5, 9};

typedef struct member {
    const char *name;
    const void *data;
    size_t n;
    int level; /* 0: stored */
    const char *password;
} member;

/* An npy file of `n` i32 numbers. */
static size_t ints(uint8_t *out, const int32_t numbers[], int n)
{
    char dict[96];

    snprintf(dict, sizeof dict, "{'descr': '<i4', 'fortran_order': False, 'shape': (%d,), }\n", n);
    return make_npy(out, dict, numbers, (size_t)n * 4);
}

static const char *write_zip(const char *name, const member members[], int n)
{
    const char *path = test_write(&folder, name, "", 0);
    zipFile z = zipOpen64(path, APPEND_STATUS_CREATE);

    assert_non_null(z);
    for (int i = 0; i < n; i++) {
        const member *m = &members[i];
        uLong crc = m->password ? crc32(0, m->data, (uInt)m->n) : 0;

        assert_int_equal(zipOpenNewFileInZip3_64(z, m->name, NULL, NULL, 0, NULL, 0, NULL,
                                                 m->level ? Z_DEFLATED : 0, m->level, 0, -MAX_WBITS,
                                                 DEF_MEM_LEVEL, Z_DEFAULT_STRATEGY, m->password,
                                                 crc, 0),
                         ZIP_OK);
        assert_int_equal(zipWriteInFileInZip(z, m->data, (unsigned)m->n), ZIP_OK);
        assert_int_equal(zipCloseFileInZip(z), ZIP_OK);
    }
    assert_int_equal(zipClose(z, NULL), ZIP_OK);
    return path;
}

static const char *write_pair(uint8_t *npy, size_t *n)
{
    *n = ints(npy, values, N);
    return write_zip("two.npz",
                     (member[]){{"x.npy", npy, *n, 6, NULL}, {"other.npy", npy, *n, 0, NULL}}, 2);
}

static void check_values(const char *path)
{
    wf_dataset *d = NULL;
    wf_err err = {0};

    if (open_one("npz", path, NULL, 0, WF_I32, &d, &err) != WF_OK)
        fail_msg("%s: %s", path, err.what);
    assert_int_equal(wf_dataset_records(d), N);
    for (uint64_t i = 0; i < N; i++) {
        int32_t value;

        assert_int_equal(wf_dataset_gather(d, 0, &i, 1, &value, NULL), WF_OK);
        assert_int_equal(value, values[i]);
    }
    wf_dataset_free(&d);
}

static void an_array_is_found_by_its_name(void **unused)
{
    char path[PATH_MAX];
    uint8_t npy[256];
    size_t n;

    (void)unused;
    strcpy(path, write_pair(npy, &n));
    check_values(path); /* the field is called x */
    strcat(path, "#other");
    check_values(path);
}

static void the_arrays_are_listed(void **unused)
{
    wf_arena *a = wf_arena_new(0);
    const char *const *names = NULL;
    uint8_t npy[256];
    size_t n, count = 0;
    const member members[] = {
        {"b.npy", npy, 0, 0, NULL}, {"readme.txt", npy, 0, 0, NULL}, {"a.npy", npy, 0, 6, NULL}};

    (void)unused;
    n = ints(npy, values, N);
    (void)n;
    assert_int_equal(wf_npz_names(write_zip("l.npz", members, 3), a, &names, &count, NULL), WF_OK);
    assert_int_equal(count, 2);
    assert_string_equal(names[0], "b");
    assert_string_equal(names[1], "a");
    wf_arena_free(&a);
}

static void one_array_needs_no_name(void **unused)
{
    wf_tensor *t = NULL;
    uint8_t npy[256];
    size_t n = ints(npy, values, N);
    wf_err err = {0};

    (void)unused;
    write_zip("one.npz", (member[]){{"arr_0.npy", npy, n, 6, NULL}}, 1);
    assert_int_equal(wf_data_load("npz", folder.file, &t, &err), WF_OK);
    assert_memory_equal(t->data, values, sizeof values);
    wf_tensor_free(&t);
    write_pair(npy, &n);
    assert_int_equal(wf_data_load("npz", folder.file, &t, &err), WF_USAGE);
    assert_non_null(strstr(err.what, "holds 2 arrays: x, other"));
}

static void what_is_not_there_is_named(void **unused)
{
    char path[PATH_MAX];
    uint8_t npy[256];
    size_t n = ints(npy, values, N);

    (void)unused;
    strcpy(path, write_pair(npy, &n));
    strcat(path, "#othr");
    expect_refused("npz", path, WF_INVALID, "has no array \"othr\"; did you mean \"other\"?");
    strcpy(path, write_zip("z.npz", (member[]){{"images.npy", npy, n, 6, NULL}}, 1));
    expect_refused("npz", path, WF_INVALID, "has no array \"x\"; it holds images");
    expect_refused("npz", "/nowhere/z.npz", WF_NOTFOUND, "/nowhere/z.npz");
    expect_refused("npz", test_write(&folder, "t.npz", npy, n), WF_INVALID, "is not a whole zip");
    expect_refused("npz", folder.path, WF_INVALID, "is a folder");
}

static void members_that_numpy_does_not_write_are_refused(void **unused)
{
    uint8_t npy[256], more[512] = {0};
    size_t n = ints(npy, values, N);

    (void)unused;
    write_zip("p.npz", (member[]){{"x.npy", npy, n, 6, "secret"}}, 1);
    expect_refused("npz", folder.file, WF_UNSUPPORTED, "\"x.npy\" is encrypted");
    write_zip("t.npz", (member[]){{"x.npy", "text", 4, 6, NULL}}, 1);
    expect_refused("npz", folder.file, WF_INVALID, "cut short");
    memcpy(more, npy, n); /* goes on behind its array */
    write_zip("m.npz", (member[]){{"x.npy", more, sizeof more, 6, NULL}}, 1);
    expect_refused("npz", folder.file, WF_INVALID, "goes on beyond");
}

/* A header that claims more than the member can hold costs no memory. */
static void a_claim_is_held_against_the_member(void **unused)
{
    static const char dict[] =
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }\n";
    uint8_t npy[256];
    size_t n = make_npy(npy, dict, values, sizeof values);

    (void)unused;
    write_zip("c.npz", (member[]){{"x.npy", npy, n, 6, NULL}}, 1);
    expect_refused("npz", folder.file, WF_INVALID, "8000000000");
}

/* Every cut and every flip of a byte gives the array or a sentence. */
static void damage_never_does_harm(void **unused)
{
    uint8_t npy[256], file[1024], other[1024];
    char path[PATH_MAX];
    size_t n, size, refused = 0;
    FILE *f;

    (void)unused;
    strcpy(path, write_pair(npy, &n));
    f = fopen(path, "rb");
    assert_non_null(f);
    size = fread(file, 1, sizeof file, f);
    fclose(f);
    assert_in_range(size, 100, sizeof file - 1);
    for (size_t k = 0; k < size - 4; k++) /* minizip reads its last numbers as 0 where they end */
        expect_refused("npz", test_write(&folder, "cut.npz", file, k), WF_INVALID, "cut.npz");
    for (size_t bit = 0; bit < 8 * size; bit += 3) {
        wf_dataset *d = NULL;
        wf_err err = {0};
        wf_status rc;

        memcpy(other, file, size);
        other[bit / 8] ^= (uint8_t)(1u << bit % 8);
        rc = open_one("npz", test_write(&folder, "flip.npz", other, size), NULL, 0, WF_NONE, &d,
                      &err);
        refused += rc != WF_OK;
        if (rc != WF_OK)
            assert_true(err.what[0] && rc != WF_NOMEM);
        wf_dataset_free(&d);
    }
    assert_true(refused > size / 3); /* what is packed and checked is half of the file */
}

/* ---- several files ---- */

static wf_status open_two(const wf_field_spec fields[], wf_dataset **d, wf_err *err)
{
    return wf_dataset_open(&(wf_dataset_spec){.format = "npy", .fields = fields, .n_fields = 2}, d,
                           err);
}

static void write_ints(const char *name, int from, int n)
{
    uint8_t npy[512];
    int32_t numbers[64];

    for (int i = 0; i < n; i++)
        numbers[i] = from + i;
    test_write(&folder, name, npy, ints(npy, numbers, n));
}

static void files_of_a_field_follow_each_other(void **unused)
{
    char pattern[PATH_MAX], a[PATH_MAX], b[PATH_MAX];
    const char *more[] = {b};
    const wf_field_spec fields[] = {{.name = "x", .path = pattern, .want = WF_I32},
                                    {.name = "y", .path = a, .more = more, .n_more = 1}};
    wf_dataset *d = NULL;
    wf_err err = {0};

    (void)unused;
    snprintf(pattern, sizeof pattern, "%s/part-*.npy", folder.path);
    snprintf(a, sizeof a, "%s/a.npy", folder.path);
    snprintf(b, sizeof b, "%s/b.npy", folder.path);
    write_ints("part-2.npy", 5, 4);
    write_ints("part-10.npy", 0, 5); /* before part-2: bytes, not numbers */
    write_ints("a.npy", 0, 5);
    write_ints("b.npy", 5, 4);
    if (open_two(fields, &d, &err) != WF_OK)
        fail_msg("%s", err.what);
    assert_int_equal(wf_dataset_records(d), 9);
    for (uint64_t i = 0; i < 9; i++)
        for (uint32_t f = 0; f < 2; f++) {
            int32_t value;

            assert_int_equal(wf_dataset_gather(d, f, &i, 1, &value, NULL), WF_OK);
            assert_int_equal(value, i);
        }
    assert_non_null(strstr(wf_dataset_field(d, 1)->path, "a.npy and 1 more"));
    assert_int_equal(wf_dataset_check_labels(d, 1, 7, &err), WF_INVALID);
    assert_non_null(strstr(err.what, "b.npy: record 3 has the label 8"));
    wf_dataset_free(&d);

    write_ints("b.npy", 5, 3);
    assert_int_equal(open_two(fields, &d, &err), WF_INVALID);
    assert_non_null(strstr(err.what, "b.npy holds 3 records (\"y\")"));
    assert_non_null(strstr(err.what, "part-2.npy holds 4 (\"x\")"));
    write_ints("part-3.npy", 0, 1); /* no pairs any more */
    assert_int_equal(open_two(fields, &d, &err), WF_INVALID);
    assert_non_null(strstr(err.what, "a.npy and 1 more holds 8 records (\"y\")"));
}

static void files_of_one_kind_belong_together(void **unused)
{
    char a[PATH_MAX], b[PATH_MAX];
    const char *more[] = {b};
    const wf_field_spec field = {.name = "x", .path = a, .more = more, .n_more = 1};
    const wf_dataset_spec spec = {.format = "npy", .fields = &field, .n_fields = 1};
    uint8_t npy[256];
    wf_dataset *d = NULL;
    wf_err err = {0};

    (void)unused;
    write_ints("a.npy", 0, 5);
    strcpy(a, folder.file);
    test_write(
        &folder, "b.npy", npy,
        make_npy(npy, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }\n", values, 8));
    strcpy(b, folder.file);
    assert_int_equal(wf_dataset_open(&spec, &d, &err), WF_INVALID);
    assert_non_null(strstr(err.what, "b.npy is float32[2, 1]"));
    assert_non_null(strstr(err.what, "a.npy is int32[5]"));
}

static void a_pattern_without_files_is_named(void **unused)
{
    char path[PATH_MAX];
    wf_err err = {0};

    (void)unused;
    snprintf(path, sizeof path, "%s/none-*.npy", folder.path);
    expect_refused("npy", path, WF_NOTFOUND, "no file matches");
    assert_int_equal(wf_format_find_files("npy", path, &err), WF_NOTFOUND);
    snprintf(path, sizeof path, "%s/x[1].npy", folder.path); /* a file of that very name */
    write_ints("x[1].npy", 0, 3);
    assert_int_equal(wf_format_find_files("npy", path, &err), WF_OK);
    strcat(path, "#x"); /* a part of the name, but for npz */
    assert_int_equal(wf_format_find_files("npy", path, &err), WF_NOTFOUND);
    assert_int_equal(wf_format_find_files("npz", path, &err), WF_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_array_is_found_by_its_name),
        cmocka_unit_test(the_arrays_are_listed),
        cmocka_unit_test(one_array_needs_no_name),
        cmocka_unit_test(what_is_not_there_is_named),
        cmocka_unit_test(members_that_numpy_does_not_write_are_refused),
        cmocka_unit_test(a_claim_is_held_against_the_member),
        cmocka_unit_test(damage_never_does_harm),
        cmocka_unit_test(files_of_a_field_follow_each_other),
        cmocka_unit_test(files_of_one_kind_belong_together),
        cmocka_unit_test(a_pattern_without_files_is_named),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
