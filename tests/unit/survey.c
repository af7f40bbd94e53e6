/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/survey.c - what columns hold: numbers, what is missing, and different values. */
#include "common/data/survey.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/data/formats.h"
#include "tests/unit/datasets.h"

#include <math.h>
#include <sys/stat.h>

static void different_values_are_counted(void **state)
{
    static const uint64_t counts[] = {0, 1, 2, 15, 16, 17, 4096, 4097, 20000, 300000};
    wf_rng_key key = {9, 2};

    (void)state;
    for (size_t k = 0; k < WF_COUNT(counts); k++) {
        wf_distinct d = {0};
        uint64_t have;
        bool exact;

        for (int again = 0; again < 2; again++)
            for (uint64_t i = 0; i < counts[k]; i++)
                assert_int_equal(wf_distinct_add(&d, wf_rng_u64(key, i), 4096, NULL), WF_OK);
        have = wf_distinct_count(&d, &exact);
        assert_true(exact == (counts[k] <= 4096));
        assert_true(exact ? have == counts[k]
                          : fabs((double)have / (double)counts[k] - 1) < 3 * 0.0163);
        wf_distinct_close(&d);
    }
}

static void expect_column(const wf_survey_column *c, const char *name, uint64_t numbers,
                          uint64_t empty, double least, double most, double mean, uint64_t distinct)
{
    bool exact;

    assert_string_equal(c->name, name);
    assert_int_equal(c->numbers, numbers);
    assert_int_equal(c->empty, empty);
    assert_true(c->least == least && c->most == most && fabs(c->mean - mean) < 1e-12);
    assert_int_equal(wf_distinct_count(&c->values, &exact), distinct);
    assert_true(exact);
}

static void columns_of_a_table_are_surveyed(void **state)
{
    static const char text[] = "a,b,c\n1,x,\n3,y,\n1.0,x,\n";
    wf_survey s;
    wf_err err = {0};

    (void)state;
    assert_int_equal(wf_csv_survey(test_write(&folder, "t.csv", text, sizeof text - 1), &s, &err),
                     WF_OK);
    assert_int_equal(s.records, 3);
    expect_column(&s.columns[0], "a", 3, 0, 1, 3, 5.0 / 3, 2);
    expect_column(&s.columns[1], "b", 0, 0, 0, 0, 0, 2);
    expect_column(&s.columns[2], "c", 0, 3, 0, 0, 0, 0);
    wf_survey_close(&s);
}

static void features_of_lines_are_surveyed(void **state)
{
    static const char *const texts[] = {"1 1:5 3:-0\n-1 3:0\n# no\n1 1:7\n", "0 0:1 2:2\n",
                                        "0 1:1 300:4\n1 2:2\n"};
    char path[PATH_MAX];
    wf_survey s;
    wf_libsvm_facts facts;
    wf_err err = {0};

    (void)state;
    strcpy(path, test_path(&folder, "t"));
    test_write(&folder, "t", texts[0], strlen(texts[0]));
    assert_int_equal(wf_libsvm_survey(path, &s, &facts, &err), WF_OK);
    assert_true(facts.features == 3 && !facts.zero_based && s.records == 3 && s.n_columns == 4);
    expect_column(&s.columns[0], "label", 3, 0, -1, 1, 1.0 / 3, 2);
    expect_column(&s.columns[1], "1", 2, 1, 5, 7, 6, 2);
    expect_column(&s.columns[2], "2", 0, 3, 0, 0, 0, 0);
    expect_column(&s.columns[3], "3", 2, 1, 0, 0, 0, 1);
    wf_survey_close(&s);
    test_write(&folder, "t", texts[1], strlen(texts[1]));
    assert_int_equal(wf_libsvm_survey(path, &s, &facts, &err), WF_OK);
    assert_true(facts.features == 3 && facts.zero_based && s.n_columns == 4);
    expect_column(&s.columns[1], "0", 1, 0, 1, 1, 1, 1);
    expect_column(&s.columns[3], "2", 1, 0, 2, 2, 2, 1);
    wf_survey_close(&s);
    test_write(&folder, "t", texts[2], strlen(texts[2]));
    assert_int_equal(wf_libsvm_survey(path, &s, &facts, &err), WF_OK);
    assert_true(facts.features == 300 && s.n_columns == 2);
    expect_column(&s.columns[1], "features", 3, 597, 1, 4, 7.0 / 3, 3);
    wf_survey_close(&s);
    test_write(&folder, "t", "1 2:1\n1 2:1 1:1\n", 16);
    assert_int_equal(wf_libsvm_survey(path, &s, &facts, &err), WF_INVALID);
    assert_non_null(strstr(err.what, "t:2: the index 1 stands behind 2"));
    wf_survey_close(&s);
}

static void arrays_are_surveyed_by_columns_or_whole(void **state)
{
    const float rows[] = {1, 2, NAN, 4, 3, 2};
    uint8_t file[512];
    wf_dataset *d = NULL;
    wf_survey s;
    size_t n;

    (void)state;
    n = make_npy(file, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }\n", rows,
                 sizeof rows);
    assert_int_equal(
        open_one("npy", test_write(&folder, "a.npy", file, n), NULL, 0, WF_F64, &d, NULL), WF_OK);
    assert_int_equal(wf_dataset_survey(d, &s, NULL), WF_OK);
    assert_int_equal(s.n_columns, 2);
    expect_column(&s.columns[0], "x[0]", 2, 1, 1, 3, 2, 2);
    expect_column(&s.columns[1], "x[1]", 3, 0, 2, 4, 8.0 / 3, 2);
    wf_survey_close(&s);
    wf_dataset_free(&d);
    n = make_npy(file, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2, 1), }\n", rows,
                 sizeof rows);
    assert_int_equal(
        open_one("npy", test_write(&folder, "a.npy", file, n), NULL, 0, WF_F64, &d, NULL), WF_OK);
    assert_int_equal(wf_dataset_survey(d, &s, NULL), WF_OK);
    assert_int_equal(s.n_columns, 1);
    expect_column(&s.columns[0], "x", 5, 1, 1, 4, 2.4, 4);
    wf_survey_close(&s);
    wf_dataset_free(&d);
}

static void formats_are_guessed(void **state)
{
    static const struct {
        const char *name, *text, *format;
    } files[] = {
        {"a.csv", "1 1:2\n", "csv"},
        {"a.csv.gz", "", "csv"},
        {"a.npz", "", "npz"},
        {"a.libsvm", "", "libsvm"},
        {"a9a", "-1 3:1 7:0.5\n", "libsvm"},
        {"a9b", "# x\n\n1 3:1 7:1e", "libsvm"},
        {"adult.data", "39, State\n", "csv"},
        {"a.txt", "1 2 3\n", "csv"},
        {"b.txt", "1,a\n2,b\n", "csv"},
        {"b.txt", "-1 3:1 7:0.5\n", "libsvm"},
        {"c.txt", "To be, or not\n\nto be", "text"},
        {"c.txt.gz.txt", "a", "text"},
        {"d.tsv", "1\ta\n0\tb\n", "csv"},
        {"e.tsv", "1\tone of the best, if not the best\n0\tnot one of these\n", "text"},
        {"x-idx3-ubyte", "", "idx"},
        {"empty", "", "idx"},
        {"a.tfrecord#x", "", "tfrecord"},
    };

    (void)state;
    for (size_t i = 0; i < WF_COUNT(files); i++)
        assert_string_equal(wf_format_guess(test_write(&folder, files[i].name, files[i].text,
                                                       strlen(files[i].text))),
                            files[i].format);
    assert_string_equal(wf_format_guess(test_write(&folder, "i", "\0\0\x08\1", 4)), "idx");
    assert_string_equal(wf_format_guess(test_path(&folder, "none")), "idx");
    assert_string_equal(wf_format_guess(folder.path), "images");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(different_values_are_counted),
        cmocka_unit_test(columns_of_a_table_are_surveyed),
        cmocka_unit_test(features_of_lines_are_surveyed),
        cmocka_unit_test(arrays_are_surveyed_by_columns_or_whole),
        cmocka_unit_test(formats_are_guessed),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
