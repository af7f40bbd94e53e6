/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sequence.c - a field read range by range holds what a data set of its files holds. */
#include "common/data/sequence.h"
#include "common/base/size.h"
#include "tests/unit/datasets.h"

#include <stdlib.h>

/* More than two windows of 16 MiB, so that windows begin and end within files. */
enum { WIDTH = 4096, RECORDS = 9000 };

static uint8_t value_of(uint64_t record, uint64_t at)
{
    return (uint8_t)(record * 31 + record / 256 + at * 7);
}

/* An npy file of records [first, first + n). */
static const char *write_npy(const char *name, uint64_t first, uint64_t n)
{
    static char path[PATH_MAX];
    uint8_t *file = malloc(n * WIDTH + 256), *body = malloc(n * WIDTH);
    char dict[128];
    size_t size;

    assert_true(file && body);
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t k = 0; k < WIDTH; k++)
            body[i * WIDTH + k] = value_of(first + i, k);
    snprintf(dict, sizeof dict, "{'descr': '|u1', 'fortran_order': False, 'shape': (%d, %d), }\n",
             (int)n, WIDTH);
    size = make_npy(file, dict, body, n * WIDTH);
    snprintf(path, sizeof path, "%s", test_write(&folder, name, file, size));
    free(file);
    free(body);
    return path;
}

static wf_sequence *open_sequence(const char *format, const char *path)
{
    const wf_field_spec field = {.name = "x", .path = path};
    wf_sequence *s = NULL;
    wf_err err = {0};

    if (wf_sequence_open(&(wf_dataset_spec){.format = format, .fields = &field, .n_fields = 1}, &s,
                         &err) != WF_OK)
        fail_msg("%s", err.what);
    return s;
}

static void check_range(wf_sequence *s, uint64_t first, size_t n)
{
    uint8_t *out = malloc(n * WIDTH);
    wf_err err = {0};

    assert_non_null(out);
    if (wf_sequence_read(s, first, n, out, &err) != WF_OK)
        fail_msg("%s", err.what);
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t k = 0; k < WIDTH; k += 97)
            if (out[i * WIDTH + k] != value_of(first + i, k))
                fail_msg("record %d is another", (int)(first + i));
    free(out);
}

static void windows_and_files_follow_each_other(void **unused)
{
    wf_sequence *s;

    (void)unused;
    write_npy("p-0.npy", 0, 100);
    write_npy("p-1.npy", 100, RECORDS - 200);
    write_npy("p-2.npy", RECORDS - 100, 100);
    s = open_sequence("npy", test_path(&folder, "p-*.npy"));
    assert_int_equal(wf_sequence_records(s), RECORDS);
    assert_int_equal(wf_sequence_field(s)->record_bytes, WIDTH);
    assert_non_null(strstr(wf_sequence_file(s, 2), "p-2.npy"));
    assert_null(wf_sequence_file(s, 3));
    for (uint64_t at = 0; at < RECORDS; at += 300)
        check_range(s, at, 300);
    check_range(s, RECORDS - 1, 1);
    check_range(s, 0, 1); /* and back */
    check_range(s, 50, 5000);
    wf_sequence_free(&s);
}

static void packed_files_are_held_whole(void **unused)
{
    uint8_t file[12 + 30] = {0, 0, 8, 2, 0, 0, 0, 10, 0, 0, 0, 3}, out[30];
    wf_sequence *s;

    (void)unused;
    for (int i = 0; i < 30; i++)
        file[12 + i] = (uint8_t)(i * 5);
    test_write_gz(&folder, "x.gz", file, sizeof file);
    s = open_sequence("idx", test_path(&folder, "x.gz"));
    assert_int_equal(wf_sequence_records(s), 10);
    assert_int_equal(wf_sequence_read(s, 4, 6, out, NULL), WF_OK);
    assert_memory_equal(out, file + 12 + 12, 18);
    assert_int_equal(wf_sequence_read(s, 0, 10, out, NULL), WF_OK);
    assert_memory_equal(out, file + 12, 30);
    wf_sequence_free(&s);
}

static void a_table_is_read_in_order(void **unused)
{
    static const char *const columns[] = {"b", "a"};
    const char *path = test_write(&folder, "t.csv", "a,b,c\n1,2,x\n3,4,y\n5,6,z\n", 24);
    const wf_field_spec field = {
        .name = "x", .columns = columns, .n_columns = 2, .is_row = true, .want = WF_F32};
    float out[4];
    wf_sequence *s = NULL;

    (void)unused;
    assert_int_equal(wf_sequence_open(&(wf_dataset_spec){.format = "csv",
                                                         .fields = &field,
                                                         .n_fields = 1,
                                                         .files = &path,
                                                         .n_files = 1,
                                                         .header = true,
                                                         .delimiter = ','},
                                      &s, NULL),
                     WF_OK);
    assert_int_equal(wf_sequence_records(s), 3);
    assert_int_equal(wf_sequence_read(s, 1, 2, out, NULL), WF_OK);
    assert_true(out[0] == 4 && out[1] == 3 && out[2] == 6 && out[3] == 5);
    wf_sequence_free(&s);
}

static void a_file_that_changes_is_refused(void **unused)
{
    wf_sequence *s = open_sequence("npy", write_npy("c.npy", 0, 10));
    uint8_t *out = malloc(10 * WIDTH);
    wf_err err = {0};

    (void)unused;
    assert_non_null(out);
    write_npy("c.npy", 0, 7);
    assert_int_equal(wf_sequence_read(s, 0, 10, out, &err), WF_INVALID);
    assert_non_null(strstr(err.what, "has 7 records, it had 10 before"));
    free(out);
    wf_sequence_free(&s);
}

static void files_of_other_records_are_refused(void **unused)
{
    static const char dict[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2), }\n";
    const wf_field_spec field = {.name = "x", .path = test_path(&folder, "o-?.npy")};
    wf_sequence *s = NULL;
    uint8_t file[256];
    char path[PATH_MAX];
    wf_field_spec copy = field;
    wf_err err = {0};

    (void)unused;
    snprintf(path, sizeof path, "%s", field.path);
    copy.path = path;
    write_npy("o-1.npy", 0, 2);
    test_write(&folder, "o-2.npy", file, make_npy(file, dict, "ab", 2));
    assert_int_equal(
        wf_sequence_open(&(wf_dataset_spec){.format = "npy", .fields = &copy, .n_fields = 1}, &s,
                         &err),
        WF_INVALID);
    assert_null(s);
    assert_non_null(strstr(err.what, "o-2.npy is uint8[2]"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(windows_and_files_follow_each_other, set_up, tear_down),
        cmocka_unit_test_setup_teardown(packed_files_are_held_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_table_is_read_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_changes_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_of_other_records_are_refused, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
