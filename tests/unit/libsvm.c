/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/libsvm.c - lines of a label and pairs: rows, labels, files one after the other, and
 * what is no good. */
#include "common/base/rng.h"
#include "common/base/size.h"
#include "tests/unit/datasets.h"

static const char *const features[] = {"features"}, *const label[] = {"label"};

/* A data set of the rows and the labels. */
typedef struct both {
    uint64_t features;
    bool zero_based;
    wf_dtype want, want_label;
    int64_t classes;
    bool is_share;
} both;

static wf_status open_of(const both *b, const char *const files[], size_t n, wf_dataset **d,
                         wf_err *err)
{
    const wf_field_spec fields[] = {
        {.name = "x", .columns = features, .n_columns = 1, .want = b->want},
        {.name = "y",
         .columns = label,
         .n_columns = 1,
         .want = b->want_label,
         .classes = b->classes,
         .is_share = b->is_share}};
    wf_status rc = wf_dataset_open(&(wf_dataset_spec){.format = "libsvm",
                                                      .fields = fields,
                                                      .n_fields = 2,
                                                      .files = files,
                                                      .n_files = n,
                                                      .header = true, /* which csv alone has */
                                                      .features = b->features,
                                                      .zero_based = b->zero_based},
                                   d, err);

    if (rc == WF_OK && b->classes)
        rc = wf_dataset_check_labels(*d, 1, b->classes, err);
    if (rc == WF_OK && b->is_share)
        rc = wf_dataset_check_shares(*d, 1, err);
    return rc;
}

static wf_status open_text(const both *b, const char *text, size_t n, wf_dataset **d, wf_err *err)
{
    const char *path = test_write(&folder, "t.libsvm", text, n);

    return open_of(b, &path, 1, d, err);
}

/* All rows of three numbers, and the labels. */
static wf_status read_all(const wf_dataset *d, float rows[][3], float labels[], wf_err *err)
{
    for (uint64_t i = 0; i < wf_dataset_records(d); i++) {
        WF_TRY(wf_dataset_gather(d, 0, &i, 1, rows[i], err));
        WF_TRY(wf_dataset_gather(d, 1, &i, 1, &labels[i], err));
    }
    return WF_OK;
}

static void lines_are_rows(void **state)
{
    static const struct {
        const char *text;
        bool zero_based;
        uint64_t features, n;
        float rows[3][3], labels[3];
    } cases[] = {
        {"1 1:2 3:4.5\n-1 2:-1e-3\n", false, 3, 2, {{2, 0, 4.5F}, {0, -1e-3F}}, {1, -1}},
        {"1 1:2 3:4.5\r\n-1 2:1\r\n", false, 3, 2, {{2, 0, 4.5F}, {0, 1}}, {1, -1}},
        {"+1 0:2 2:4\n0.5 1:1", true, 3, 2, {{2, 0, 4}, {0, 1}}, {1, .5F}},
        {"# a comment\n\n1\t1:2  3:4 # last\n#2 1:1\n0\n# end", false, 3, 2, {{2, 0, 4}}, {1, 0}},
        {"  7 1:1 \t\n8#9 1:1\n", false, 3, 2, {{1}, {0}}, {7, 8}},
        {"1 1:1\n2 003:.5\n3 2:+7\n", false, 0, 3, {{1}, {0, 0, .5F}, {0, 7}}, {1, 2, 3}},
        {"1 2:1\n2 0:1 1:3\n", true, 0, 2, {{0, 0, 1}, {1, 3}}, {1, 2}},
        {"\xef\xbb\xbf"
         "1 3:1\n",
         false,
         0,
         1,
         {{0, 0, 1}},
         {1}},
    };

    (void)state;
    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        const both b = {.features = cases[i].features,
                        .zero_based = cases[i].zero_based,
                        .want = WF_F32,
                        .want_label = WF_F32};
        float rows[3][3] = {0}, labels[3] = {0};
        wf_dataset *d = NULL;
        wf_err err = {0};

        if (open_text(&b, cases[i].text, strlen(cases[i].text), &d, &err) != WF_OK)
            fail_msg("%zu: %s", i, err.what);
        assert_int_equal(wf_dataset_records(d), cases[i].n);
        assert_int_equal(wf_dataset_field(d, 0)->rank, 1);
        assert_int_equal(wf_dataset_field(d, 0)->dims[0], 3);
        assert_int_equal(wf_dataset_field(d, 1)->rank, 0);
        if (read_all(d, rows, labels, &err) != WF_OK)
            fail_msg("%zu: %s", i, err.what);
        assert_memory_equal(rows, cases[i].rows, cases[i].n * sizeof rows[0]);
        assert_memory_equal(labels, cases[i].labels, cases[i].n * sizeof labels[0]);
        wf_dataset_free(&d);
    }
}

static void files_follow_each_other(void **state)
{
    char paths[3][PATH_MAX];
    const char *files[] = {paths[0], paths[1], paths[2]};
    const both b = {.features = 3, .want = WF_F32, .want_label = WF_F32};
    float rows[4][3], labels[4];
    wf_dataset *d = NULL;
    wf_err err = {0};

    (void)state;
    strcpy(paths[0], test_write(&folder, "a", "1 1:1\n# no end", 14));
    test_write_gz(&folder, "b.gz", "2 2:2\n\n3 3:3\n", 13);
    strcpy(paths[1], test_path(&folder, "b.gz"));
    strcpy(paths[2], test_write(&folder, "c", "4\n", 2));
    assert_int_equal(open_of(&b, files, 3, &d, &err), WF_OK);
    assert_int_equal(wf_dataset_records(d), 4);
    assert_int_equal(read_all(d, rows, labels, &err), WF_OK);
    for (int i = 0; i < 4; i++) {
        assert_true(labels[i] == (float)(i + 1));
        for (int k = 0; k < 3; k++)
            assert_true(rows[i][k] == (i == k ? (float)(i + 1) : 0));
    }
    wf_dataset_free(&d);
}

/* As classes of 2, and as shares, -1 is 0; numbers stay what they are. */
static void labels_of_two_signs_are_classes(void **state)
{
    static const char text[] = "-1 1:1\n+1 1:1\n0 1:1\n";
    const both forms[] = {{.features = 1, .want_label = WF_I64, .classes = 2},
                          {.features = 1, .want_label = WF_F32, .is_share = true},
                          {.features = 1, .want_label = WF_F32},
                          {.features = 1, .want_label = WF_I64, .classes = 3}};
    const double first[] = {0, 0, -1};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(forms); i++) {
        uint64_t at = 0;
        wf_dataset *d = NULL;
        wf_err err = {0};
        union {
            float f;
            int64_t i;
        } value;

        assert_int_equal(open_text(&forms[i], text, sizeof text - 1, &d, &err), WF_OK);
        if (i == 3) {
            assert_int_equal(wf_dataset_gather(d, 1, &at, 1, &value, &err), WF_INVALID);
            assert_non_null(strstr(err.what, "t.libsvm:1"));
        } else {
            assert_int_equal(wf_dataset_gather(d, 1, &at, 1, &value, &err), WF_OK);
            assert_true((i ? (double)value.f : (double)value.i) == first[i]);
        }
        wf_dataset_free(&d);
    }
}

static void a_line_that_is_no_good_is_named(void **state)
{
    static const struct {
        const char *line, *says;
        wf_status status;
        bool zero_based;
    } cases[] = {
        {"one 1:1", "the label \"one\" is not a number", WF_INVALID},
        {"1:1", "the label \"1:1\" is not a number", WF_INVALID},
        {"1,2 1:1", "the label \"1,2\" is not a number", WF_INVALID},
        {"nan 1:1", "is not a number", WF_INVALID},
        {" \t", "a line without a label", WF_INVALID},
        {"1 0:1", "the index 0, where indices count from 1", WF_INVALID},
        {"1 4:1", "the index 4 is beyond the 3 features", WF_INVALID},
        {"1 3:1", "the index 3 is beyond the 3 features", WF_INVALID, true},
        {"1 2:1 1:1", "the index 1 stands behind 2", WF_INVALID},
        {"1 2:1 2:1", "the index 2 stands behind 2", WF_INVALID},
        {"1 1:a", "\"1:a\" is no pair", WF_INVALID},
        {"1 a:1", "\"a:1\" is no pair", WF_INVALID},
        {"1 -1:1", "\"-1:1\" is no pair", WF_INVALID},
        {"1 1:", "\"1:\" is no pair", WF_INVALID},
        {"1 1", "\"1\" is no pair", WF_INVALID},
        {"1 :1", "\":1\" is no pair", WF_INVALID},
        {"1 1: 2", "\"1:\" is no pair", WF_INVALID},
        {"1 1:1e999", "is no pair", WF_INVALID},
        {"1 1:inf", "is no pair", WF_INVALID},
        {"1 1:1:1", "is no pair", WF_INVALID},
        {"1 99999999999999999999:1", "is no pair", WF_INVALID},
        {"1 999999999999999999:1", "is beyond the 3 features", WF_INVALID},
        {"1 qid:3 1:1", "the query id \"qid:3\"", WF_UNSUPPORTED},
    };

    (void)state;
    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        const both b = {
            .features = 3, .zero_based = cases[i].zero_based, .want = WF_F32, .want_label = WF_F32};
        const uint64_t good = 0, bad = 1;
        char text[128];
        float row[3];
        wf_dataset *d = NULL;
        wf_err err = {0};
        wf_status rc;
        int n = snprintf(text, sizeof text, "# x\n1 1:1\n%s\n", cases[i].line);

        assert_int_equal(open_text(&b, text, (size_t)n, &d, &err), WF_OK);
        assert_int_equal(wf_dataset_gather(d, 0, &good, 1, row, &err), WF_OK);
        rc = wf_dataset_gather(d, 0, &bad, 1, row, &err);
        if (rc != cases[i].status || !strstr(err.what, "t.libsvm:3: ") ||
            !strstr(err.what, cases[i].says))
            fail_msg("\"%s\": %s", cases[i].line, err.what);
        wf_dataset_free(&d);
    }
}

static void a_data_set_that_cannot_be_is_refused(void **state)
{
    static const char *const wrong[] = {"fetures"};
    const char *path = test_write(&folder, "w", "1 1:1\n2 99999999:1\n", 19);
    const wf_map_step words = {.type = "vocabulary", .number = 3};
    wf_field_spec field = {.name = "x", .columns = features, .n_columns = 1, .want = WF_F32};
    wf_dataset_spec spec = {
        .format = "libsvm", .fields = &field, .n_fields = 1, .files = &path, .n_files = 1};
    wf_dataset *d = NULL;
    wf_err err = {0};

    (void)state;
    assert_int_equal(wf_dataset_open(&spec, &d, &err), WF_INVALID);
    assert_non_null(strstr(err.what, "99999999 features; 1 to "));
    spec.features = 1;
    field.columns = wrong;
    assert_int_equal(wf_dataset_open(&spec, &d, &err), WF_USAGE);
    assert_non_null(strstr(err.hint, "did you mean \"features\"?"));
    field.columns = features;
    field.steps = &words;
    field.n_steps = 1;
    assert_int_equal(wf_dataset_open(&spec, &d, &err), WF_USAGE);
    assert_non_null(strstr(err.what, "libsvm files have no words"));
    field.n_steps = 0;
    field.want = WF_I64;
    path = test_write(&folder, "w", "1 1:1.5\n", 8);
    assert_int_equal(wf_dataset_open(&spec, &d, &err), WF_OK);
    assert_int_equal(wf_dataset_gather(d, 0, (uint64_t[]){0}, 1, (int64_t[1]){0}, &err),
                     WF_INVALID);
    assert_non_null(strstr(err.what, "w:1: 1.5 is no whole number"));
    wf_dataset_free(&d);
}

/* Every cut and every changed byte is read or refused, and never more than the file is read. */
static void damaged_lines_are_read_or_refused(void **state)
{
    static const char text[] = "# c\n1 1:2.5 3:1e-3\n-1 2:7 # x\n\r\n+0.5 1:1 2:2 3:3\n";
    const both b = {.want = WF_F32, .want_label = WF_F32};
    wf_rng_key key = {5, 1};

    (void)state;
    for (size_t i = 0; i < 20 * sizeof text; i++) {
        char *copy = strdup(text);
        size_t n = i < sizeof text ? i : sizeof text - 1;
        wf_dataset *d = NULL;
        float labels[8];

        if (i >= sizeof text)
            copy[i % n] = (char)wf_rng_u64(key, i);
        if (open_text(&b, copy, n, &d, NULL) == WF_OK)
            for (uint64_t at = 0; at < wf_dataset_records(d); at++)
                assert_true(wf_dataset_gather(d, 1, &at, 1, labels, NULL) != WF_NOMEM);
        wf_dataset_free(&d);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_rows),
        cmocka_unit_test(files_follow_each_other),
        cmocka_unit_test(labels_of_two_signs_are_classes),
        cmocka_unit_test(a_line_that_is_no_good_is_named),
        cmocka_unit_test(a_data_set_that_cannot_be_is_refused),
        cmocka_unit_test(damaged_lines_are_read_or_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
