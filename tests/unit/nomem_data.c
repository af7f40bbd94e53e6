/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/nomem_data.c - data sets are opened and read in batches while memory ends. */
#include "common/base/size.h"
#include "common/data/data.h"
#include "common/data/learnt.h"
#include "common/data/listing.h"
#include "common/data/reader.h"
#include "common/data/survey.h"
#include "tests/unit/datasets.h"
#include "tests/unit/nomem.h"
#include "tests/unit/tfrecords.h"

#include <zstd.h>

enum { RECORDS = 50, BATCH = 8 };

static char x_path[PATH_MAX], y_path[PATH_MAX];

static wf_status open_files(const char *format, wf_dataset **out, wf_err *err)
{
    static const int64_t shape[] = {2, 1};
    const wf_map_step steps[] = {{.type = "scale", .number = 0.5},
                                 {.type = "reshape", .ints = shape, .n_ints = 2}};
    const wf_map_step one_hot = {.type = "one_hot", .number = RECORDS};
    const wf_field_spec fields[] = {{.name = "x", .path = x_path, .steps = steps, .n_steps = 2},
                                    {.name = "y", .path = y_path, .steps = &one_hot, .n_steps = 1}};

    return wf_dataset_open(&(wf_dataset_spec){.format = format, .fields = fields, .n_fields = 2},
                           out, err);
}

/* Record i is i, i + 1 in x, and i in y. */
static wf_status check_batch(const wf_batch *b, uint64_t at, wf_err *err)
{
    const float *x = wf_f32(&b->fields[0]), *y = wf_f32(&b->fields[1]);

    for (uint64_t i = 0; i < b->n; i++)
        if (x[2 * i] != 0.5f * (float)(at + i) || y[RECORDS * i + at + i] != 1)
            return wrong(err, "record %d is another", (int)(at + i));
    return WF_OK;
}

static wf_status read_all(const wf_dataset *d, uint32_t depth, wf_err *err)
{
    wf_data_reader_spec spec = {.dataset = d, .batch = BATCH, .seed = 1, .depth = depth};
    wf_data_reader *r = NULL;
    const wf_batch *b;
    uint64_t at = 0;
    wf_status rc = wf_data_reader_new(&spec, &r, err);

    for (uint64_t split = 0; rc == WF_OK && split < 5; split++)
        rc = wf_data_reader_open(r, 0, split, split * 10, split * 10 + 10, 0, err);
    while (rc == WF_OK && (rc = wf_data_reader_next(r, &b, err)) == WF_OK && b) {
        rc = check_batch(b, at, err);
        at += b->n;
        wf_data_reader_release(r, &b);
    }
    if (rc == WF_OK && at != RECORDS)
        rc = wrong(err, "%d records were read", (int)at);
    wf_data_reader_free(&r);
    return rc;
}

static wf_status open_and_read(void *depth, wf_err *err)
{
    wf_dataset *d = NULL;
    wf_status rc = open_files("idx", &d, err);

    if (rc == WF_OK)
        rc = read_all(d, *(const uint32_t *)depth, err);
    wf_dataset_free(&d);
    return rc;
}

/* A table of the same records. */
static wf_status open_table(void *path, wf_err *err)
{
    static const char *const columns[] = {"a", "b"}, *const label[] = {"y"};
    static const char *const words[] = {"w0", "w1", "w2"};
    const wf_column_spec schema[] = {{.name = "w", .words = words, .n_words = 3},
                                     {.name = "y", .dtype = WF_I64}};
    const int64_t shape[] = {2, 1};
    const wf_map_step steps[] = {{.type = "scale", .number = 0.5},
                                 {.type = "reshape", .ints = shape, .n_ints = 2}};
    const wf_map_step one_hot = {.type = "one_hot", .number = RECORDS};
    const wf_field_spec fields[] = {
        {.name = "x",
         .columns = columns,
         .n_columns = 2,
         .is_row = true,
         .want = WF_F32,
         .steps = steps,
         .n_steps = 2},
        {.name = "y", .columns = label, .n_columns = 1, .steps = &one_hot, .n_steps = 1}};
    wf_dataset *d = NULL;
    wf_status rc = wf_dataset_open(&(wf_dataset_spec){.format = "csv",
                                                      .fields = fields,
                                                      .n_fields = 2,
                                                      .files = (const char *const *)&path,
                                                      .n_files = 1,
                                                      .header = true,
                                                      .schema = schema,
                                                      .n_schema = 2},
                                   &d, err);

    if (rc == WF_OK)
        rc = read_all(d, 0, err);
    wf_dataset_free(&d);
    return rc;
}

/* Lines of pairs, whose largest index is found. */
static wf_status open_lines(void *path, wf_err *err)
{
    static const char *const row[] = {"features"}, *const label[] = {"label"};
    const wf_map_step half = {.type = "scale", .number = 0.5};
    const wf_map_step one_hot = {.type = "one_hot", .number = RECORDS};
    const wf_field_spec fields[] = {
        {.name = "x", .columns = row, .n_columns = 1, .want = WF_F32, .steps = &half, .n_steps = 1},
        {.name = "y", .columns = label, .n_columns = 1, .steps = &one_hot, .n_steps = 1}};
    wf_dataset *d = NULL;
    wf_status rc = wf_dataset_open(&(wf_dataset_spec){.format = "libsvm",
                                                      .fields = fields,
                                                      .n_fields = 2,
                                                      .files = (const char *const *)&path,
                                                      .n_files = 1},
                                   &d, err);

    if (rc == WF_OK)
        rc = read_all(d, 0, err);
    wf_dataset_free(&d);
    return rc;
}

/* Bags in csv, numbered, and with weights. */
static wf_status open_bags(void *path, wf_err *err)
{
    static const char *const ids[] = {"t"}, *const weights[] = {"w"};
    wf_map_step words = {.type = "vocabulary", .number = 2};
    const wf_field_spec fields[] = {{.name = "x",
                                     .columns = ids,
                                     .n_columns = 1,
                                     .is_bag = true,
                                     .bag_most = 2,
                                     .steps = &words,
                                     .n_steps = 1,
                                     .want = WF_I64},
                                    {.name = "y",
                                     .columns = weights,
                                     .n_columns = 1,
                                     .is_bag = true,
                                     .bag_most = 2,
                                     .bag_ids = "x",
                                     .want = WF_F32}};
    const uint64_t at = 0;
    int64_t places[2];
    wf_dataset *d = NULL;
    wf_status rc = wf_dataset_open(&(wf_dataset_spec){.format = "csv",
                                                      .fields = fields,
                                                      .n_fields = 2,
                                                      .files = (const char *const *)&path,
                                                      .n_files = 1,
                                                      .header = true},
                                   &d, err);

    if (rc == WF_OK)
        rc = wf_dataset_gather(d, 0, &at, 1, places, err);
    if (rc == WF_OK && (places[0] != 1 || places[1] != -1))
        rc = wrong(err, "an id is %d", (int)places[0]);
    wf_dataset_free(&d);
    return rc;
}

/* The words of a table, learnt, kept and given again. */
static wf_status open_words(void *path, wf_err *err)
{
    static const char *const columns[] = {"w"};
    wf_map_step steps[] = {{.type = "vocabulary", .number = 2}};
    const wf_field_spec field = {
        .name = "x", .columns = columns, .n_columns = 1, .steps = steps, .n_steps = 1};
    wf_dataset_spec spec = {.format = "csv",
                            .fields = &field,
                            .n_fields = 1,
                            .files = (const char *const *)&path,
                            .n_files = 1,
                            .header = true};
    const wf_dataset_spec trained = spec;
    wf_learnt rows[WF_LEARNT_MOST];
    wf_learnt_list kept = {0};
    wf_dataset *d = NULL;
    wf_status rc;

    spec.reference = &trained;
    rc = wf_dataset_open(&spec, &d, err);
    if (rc == WF_OK)
        rc = wf_learnt_keep(rows, wf_dataset_learnt(d, rows), &kept, err);
    wf_dataset_free(&d);
    spec.reference = NULL;
    if (rc == WF_OK)
        rc = wf_learnt_give(kept.rows, kept.n, "x", steps, 1, err);
    if (rc == WF_OK)
        rc = wf_dataset_open(&spec, &d, err);
    if (rc == WF_OK && (wf_dataset_learnt(d, rows) != 1 || rows[0].n_words != 2))
        rc = wrong(err, "other words");
    wf_dataset_free(&d);
    wf_learnt_close(&kept);
    return rc;
}

static wf_status survey_table(void *path, wf_err *err)
{
    wf_survey s;
    wf_status rc = wf_csv_survey(path, &s, err);

    if (rc == WF_OK && (s.records != RECORDS || s.n_columns != 4 || s.columns[3].n_words != 3))
        rc = wrong(err, "another survey");
    wf_survey_close(&s);
    return rc;
}

static wf_status survey_lines(void *path, wf_err *err)
{
    wf_survey s;
    wf_libsvm_facts facts;
    wf_status rc = wf_libsvm_survey(path, &s, &facts, err);

    if (rc == WF_OK &&
        (s.records != RECORDS || facts.features != 2 || s.columns[0].values.n != RECORDS))
        rc = wrong(err, "another survey");
    wf_survey_close(&s);
    return rc;
}

static wf_status open_records(void *path, wf_err *err)
{
    const wf_field_spec field = {.name = "f", .path = path};
    wf_dataset *d = NULL;
    wf_status rc = wf_dataset_open(
        &(wf_dataset_spec){.format = "tfrecord", .fields = &field, .n_fields = 1}, &d, err);

    if (rc == WF_OK && wf_dataset_records(d) != 3 * RECORDS)
        rc = wrong(err, "%d records", (int)wf_dataset_records(d));
    wf_dataset_free(&d);
    return rc;
}

static wf_status open_synthetic(void *unused, wf_err *err)
{
    const wf_field_spec fields[] = {{.name = "x", .rank = 2, .dims = {3, 4}, .want = WF_F32},
                                    {.name = "y", .classes = 7, .want = WF_I64}};
    wf_dataset *d = NULL;
    wf_status rc = wf_dataset_open(
        &(wf_dataset_spec){
            .format = "synthetic", .fields = fields, .n_fields = 2, .records = 20, .seed = 5},
        &d, err);

    (void)unused;
    wf_dataset_free(&d);
    return rc;
}

static wf_status load(void *path, wf_err *err)
{
    wf_tensor *t = NULL;
    wf_status rc = wf_data_load("npy", path, &t, err);

    if (rc == WF_OK && (t->rank != 1 || t->dims[0] != 3 || ((uint8_t *)t->data)[2] != 9))
        rc = wrong(err, "another array");
    wf_tensor_free(&t);
    return rc;
}

static void files_are_read_in_batches(void **state)
{
    (void)state;
    for (uint32_t depth = 0; depth < 4; depth += 3)
        assert_survives(open_and_read, &depth);
}

static void packed_files_are_read_in_batches(void **state)
{
    uint32_t depth = 0;
    char plain[PATH_MAX];

    (void)state;
    strcpy(plain, x_path);
    snprintf(x_path, sizeof x_path, "%s/x.gz", folder.path);
    assert_survives(open_and_read, &depth);
    strcpy(x_path, plain);
}

static void tables_are_read_in_batches(void **state)
{
    static const char *const names[] = {"t.csv", "t.csv.gz", "t.csv.zst"};
    char text[16 * RECORDS], path[PATH_MAX], packed[17 * RECORDS];
    size_t n = (size_t)snprintf(text, sizeof text, "a,y,b,w\n"), n_packed;

    (void)state;
    for (int i = 0; i < RECORDS; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%d,%d,%d,w%d\n", i, i, i + 1, i % 3);
    test_write(&folder, names[0], text, n);
    test_write_gz(&folder, names[1], text, n);
    n_packed = ZSTD_compress(packed, sizeof packed, text, n, 1);
    assert_false(ZSTD_isError(n_packed));
    test_write(&folder, names[2], packed, n_packed);
    for (size_t i = 0; i < WF_COUNT(names); i++) {
        strcpy(path, test_path(&folder, names[i]));
        assert_survives(open_table, path);
        assert_survives(open_words, path);
        assert_survives(survey_table, path);
    }
}

static void bags_are_read(void **state)
{
    static const char text[] = "t,w\na,1\na|b,1|2\n";
    char path[PATH_MAX];

    (void)state;
    strcpy(path, test_write(&folder, "t.csv", text, sizeof text - 1));
    assert_survives(open_bags, path);
}

static void lines_are_read_in_batches(void **state)
{
    char text[16 * RECORDS], path[PATH_MAX];
    size_t n = 0;

    (void)state;
    for (int i = 0; i < RECORDS; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%d 1:%d 2:%d\n", i, i, i + 1);
    strcpy(path, test_write(&folder, "t.libsvm", text, n));
    assert_survives(open_lines, path);
    assert_survives(survey_lines, path);
}

/* Lines of text with labels, learnt of others, and windows of them. */
static wf_status open_prose(void *path, wf_err *err)
{
    static const char *const columns[] = {"text", "label", "next"};
    const wf_map_step words = {.type = "text_vectorization", .tokens = {.lowers = true}};
    wf_map_step cut = words;
    wf_field_spec fields[] = {
        {.name = "x", .columns = columns, .n_columns = 1, .steps = &cut, .n_steps = 1},
        {.name = "y", .columns = columns + 1, .n_columns = 1, .want = WF_F32}};
    wf_dataset_spec spec = {.format = "text",
                            .fields = fields,
                            .n_fields = 2,
                            .files = (const char *const *)&path,
                            .n_files = 1,
                            .labelled = true};
    const wf_dataset_spec trained = spec;
    const uint64_t at = 2;
    int64_t x[150];
    wf_dataset *d = NULL;
    wf_status rc;

    cut.tokens.length = 150; /* more than the stack has room for */
    spec.reference = &trained;
    rc = wf_dataset_open(&spec, &d, err);
    if (rc == WF_OK)
        rc = wf_dataset_gather(d, 0, &at, 1, x, err);
    if (rc == WF_OK && (x[0] != 2 || x[1] != 3 || x[2] != 0))
        rc = wrong(err, "tokens %d and %d", (int)x[0], (int)x[1]);
    wf_dataset_free(&d);
    fields[0].steps = &words;
    fields[1] = fields[0];
    fields[1].name = "y";
    fields[1].columns = columns + 2;
    spec.sequence_length = spec.sequence_stride = 3;
    spec.reference = NULL;
    if (rc == WF_OK)
        rc = wf_dataset_open(&spec, &d, err);
    if (rc == WF_OK)
        rc = wf_dataset_gather(d, 1, &at, 1, x, err);
    wf_dataset_free(&d);
    return rc;
}

static wf_status survey_prose(void *path, wf_err *err)
{
    wf_survey s;
    wf_text_facts f;
    wf_status rc = wf_text_survey(path, &s, &f, err);

    if (rc == WF_OK && (!f.labelled || f.words != 2 * RECORDS || f.distinct_words != 2))
        rc = wrong(err, "%d words", (int)f.words);
    wf_survey_close(&s);
    return rc;
}

static void text_becomes_tokens(void **state)
{
    char text[16 * RECORDS], path[PATH_MAX];
    size_t n = 0;

    (void)state;
    for (int i = 0; i < RECORDS; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%d\tTo be\n", i);
    strcpy(path, test_write(&folder, "p.txt", text, n));
    assert_survives(open_prose, path);
    assert_survives(survey_prose, path);
}

static void records_are_read(void **state)
{
    static test_text file;

    (void)state;
    for (int i = 0; i < 3 * RECORDS; i++)
        put_example(&file, i);
    assert_survives(open_records, (void *)test_write(&folder, "a.tfrecord", file.data, file.n));
}

/* Two files by a pattern, some of it held out, through steps that take memory of their own. */
static wf_status open_parts(void *pattern, wf_err *err)
{
    static const int64_t size[] = {2, 2};
    const wf_map_step steps[] = {{.type = "crop", .ints = size, .n_ints = 2, .number = 1},
                                 {.type = "flip"},
                                 {.type = "standardise"}};
    const wf_field_spec field = {
        .name = "x", .path = pattern, .steps = steps, .n_steps = 3, .want = WF_F32};
    const wf_dataset_spec train = {
        .format = "npy", .fields = &field, .n_fields = 1, .held_out = 0.5, .is_random = true};
    wf_dataset_spec eval = train;
    const uint64_t at[] = {1, 0};
    wf_dataset *d = NULL;
    float out[8];
    wf_status rc;

    eval.is_held_out = true;
    eval.is_random = false;
    eval.reference = &train;
    rc = wf_dataset_open(&eval, &d, err);
    if (rc == WF_OK)
        rc = wf_dataset_gather(d, 0, at, 2, out, err);
    if (rc == WF_OK && wf_dataset_records(d) != 2)
        rc = wrong(err, "%d records", (int)wf_dataset_records(d));
    wf_dataset_free(&d);
    return rc;
}

static void files_of_a_pattern_are_mapped(void **state)
{
    uint8_t file[256], pixels[18];
    char pattern[PATH_MAX];
    size_t n;

    (void)state;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * i);
    n = make_npy(file, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3, 3), }\n", pixels,
                 sizeof pixels);
    test_write(&folder, "part-0.npy", file, n);
    test_write(&folder, "part-1.npy", file, n);
    snprintf(pattern, sizeof pattern, "%s/part-*.npy", folder.path);
    assert_survives(open_parts, pattern);
}

static wf_status list_parts(void *pattern, wf_err *err)
{
    const char *const patterns[] = {pattern, pattern};
    wf_arena *a = wf_arena_new(0);
    wf_listed *list = NULL;
    size_t n = 0;
    wf_status rc = a ? wf_data_list(patterns, 2, a, &list, &n, err) : wf_fail_nomem(err, 0);

    if (rc == WF_OK && (n != 2 || !strstr(list[1].path, "/new-1.csv") || list[1].bytes != 4))
        rc = wrong(err, "%d files", (int)n);
    wf_arena_free(&a);
    return rc;
}

static void files_that_appear_are_listed(void **state)
{
    char pattern[PATH_MAX];

    (void)state;
    for (int i = 0; i < 2; i++)
        test_write(&folder, i ? "new-1.csv" : "new-0.csv", "a\n1\n", 4);
    snprintf(pattern, sizeof pattern, "%s/new-*.csv", folder.path);
    assert_survives(list_parts, pattern);
}

static void noise_is_made(void **state)
{
    (void)state;
    assert_survives(open_synthetic, NULL);
}

static void an_array_is_loaded(void **state)
{
    static const uint8_t values[] = {7, 8, 9};
    uint8_t file[256];
    size_t n;

    (void)state;
    n = make_npy(file, "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }\n", values, 3);
    assert_survives(load, (void *)test_write(&folder, "a.npy", file, n));
}

static int make_files(void **state)
{
    uint8_t x[12 + RECORDS * 2] = {0, 0, 8, 2, 0, 0, 0, RECORDS, 0, 0, 0, 2};
    uint8_t y[8 + RECORDS] = {0, 0, 8, 1, 0, 0, 0, RECORDS};

    for (int i = 0; i < RECORDS; i++) {
        x[12 + 2 * i] = y[8 + i] = (uint8_t)i;
        x[13 + 2 * i] = (uint8_t)(i + 1);
    }
    set_up(state);
    strcpy(x_path, test_write(&folder, "x", x, sizeof x));
    strcpy(y_path, test_write(&folder, "y", y, sizeof y));
    test_write_gz(&folder, "x.gz", x, sizeof x);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_read_in_batches),
        cmocka_unit_test(packed_files_are_read_in_batches),
        cmocka_unit_test(tables_are_read_in_batches),
        cmocka_unit_test(lines_are_read_in_batches),
        cmocka_unit_test(bags_are_read),
        cmocka_unit_test(text_becomes_tokens),
        cmocka_unit_test(records_are_read),
        cmocka_unit_test(files_of_a_pattern_are_mapped),
        cmocka_unit_test(files_that_appear_are_listed),
        cmocka_unit_test(noise_is_made),
        cmocka_unit_test(an_array_is_loaded),
    };

    return cmocka_run_group_tests(tests, make_files, tear_down);
}
