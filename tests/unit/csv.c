/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/csv.c - comma-separated values: cells, columns, files one after the other, and what is
 * no good. */
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/data/reader.h"
#include "tests/unit/datasets.h"

#include <inttypes.h>
#include <pthread.h>

enum { RECORDS = 60000, THREADS = 3, GATHERS = 400, BATCH = 64 };

static const char *const colours[] = {"red", "green", "very \"blue\""};
static const wf_column_spec colour = {.name = "colour", .words = colours, .n_words = 3};
static const char *const number[] = {"a"}, *const pair[] = {"b", "a"}, *const word[] = {"colour"};

/* A data set with one field. */
typedef struct one {
    const char *const *columns;
    size_t n_columns;
    bool is_row, no_header;
    char delimiter;
    wf_dtype want;
    const wf_column_spec *schema;
    size_t n_schema;
} one;

static wf_status open_one_of(const one *o, const char *const files[], size_t n, wf_dataset **d,
                             wf_err *err)
{
    const wf_field_spec field = {.name = "x",
                                 .columns = o->columns,
                                 .n_columns = o->n_columns,
                                 .is_row = o->is_row,
                                 .want = o->want};
    const wf_dataset_spec spec = {.format = "csv",
                                  .fields = &field,
                                  .n_fields = 1,
                                  .files = files,
                                  .n_files = n,
                                  .header = !o->no_header,
                                  .delimiter = o->delimiter,
                                  .schema = o->schema,
                                  .n_schema = o->n_schema};

    return wf_dataset_open(&spec, d, err);
}

static wf_status open_text(const one *o, const char *text, wf_dataset **d, wf_err *err)
{
    const char *path = test_write(&folder, "t.csv", text, strlen(text));

    return open_one_of(o, &path, 1, d, err);
}

/* ---- cells ---- */

static void an_empty_cell_may_be_filled(void **state)
{
    const wf_map_step fill = {.type = "fill", .number = -1};
    const char *path = test_write(&folder, "e.csv", "a,b\n1,\n,4\n", 10);
    wf_field_spec field = {.name = "x",
                           .columns = pair,
                           .n_columns = 2,
                           .is_row = true,
                           .want = WF_F32,
                           .steps = &fill,
                           .n_steps = 1};
    wf_dataset_spec spec = {.format = "csv",
                            .fields = &field,
                            .n_fields = 1,
                            .files = &path,
                            .n_files = 1,
                            .header = true,
                            .delimiter = ','};
    wf_dataset *d = NULL;
    float rows[4];
    wf_err err = {0};

    (void)state;
    assert_int_equal(wf_dataset_open(&spec, &d, &err), WF_OK);
    assert_int_equal(wf_dataset_gather(d, 0, (uint64_t[]){0, 1}, 2, rows, &err), WF_OK);
    assert_true(rows[0] == -1 && rows[1] == 1 && rows[2] == 4 && rows[3] == -1);
    assert_true(wf_dataset_range(d, 0).least == 0 && wf_dataset_range(d, 0).most == 0);
    wf_dataset_free(&d);
    field.n_steps = 0;
    assert_int_equal(wf_dataset_open(&spec, &d, &err), WF_OK);
    assert_int_equal(wf_dataset_gather(d, 0, (uint64_t[]){0}, 1, rows, &err), WF_INVALID);
    wf_dataset_free(&d);
}

static void cells_are_read_as_the_rfc_has_them(void **state)
{
    static const struct {
        const char *text;
        double values[3];
        uint64_t n;
    } rows[] = {
        {"a,b\n1,2\n3,4\n", {1, 3}, 2},
        {"a,b\r\n1,2\r\n3,4\r\n", {1, 3}, 2},
        {"a,b\n1,2\n3,4", {1, 3}, 2},
        {"\xef\xbb\xbf"
         "a,b\n1,2\n",
         {1},
         1},
        {"\n\n a , b \n\n 1 ,2\n\r\n\n3\t,4\n\n", {1, 3}, 2},
        {"b,a\n\"x, \"\"y\"\"\n\",\"7\"\n,8\n", {7, 8}, 2},
        {"\"a\",b\n \"1\" ,2\n", {1}, 1},
        {"a\n-1.5e3\n.5\n1.\n", {-1500, .5, 1}, 3},
    };
    const one o = {.columns = number, .n_columns = 1, .want = WF_F64};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(rows); i++) {
        wf_dataset *d = NULL;
        wf_err err = {0};

        if (open_text(&o, rows[i].text, &d, &err) != WF_OK)
            fail_msg("%zu: %s", i, err.what);
        assert_int_equal(wf_dataset_records(d), rows[i].n);
        assert_int_equal(wf_dataset_field(d, 0)->rank, 0);
        for (uint64_t k = 0; k < rows[i].n; k++) {
            double value;

            if (wf_dataset_gather(d, 0, &k, 1, &value, &err) != WF_OK)
                fail_msg("%zu: %s", i, err.what);
            assert_true(value == rows[i].values[k]);
        }
        wf_dataset_free(&d);
    }
}

static void columns_come_in_the_order_of_the_field(void **state)
{
    const one o = {.columns = pair, .n_columns = 2, .is_row = true, .want = WF_F32};
    const one by_schema = {.columns = pair,
                           .n_columns = 2,
                           .is_row = true,
                           .no_header = true,
                           .delimiter = ';',
                           .want = WF_F32,
                           .schema = (wf_column_spec[]){{.name = "a"}, {.name = "b"}},
                           .n_schema = 2};
    uint64_t at = 1;
    float values[2];
    wf_dataset *d = NULL;

    (void)state;
    assert_int_equal(open_text(&o, "a,c,b\n1,x,2\n3,y,4\n", &d, NULL), WF_OK);
    assert_int_equal(wf_dataset_field(d, 0)->rank, 1);
    assert_int_equal(wf_dataset_field(d, 0)->dims[0], 2);
    assert_int_equal(wf_dataset_gather(d, 0, &at, 1, values, NULL), WF_OK);
    assert_true(values[0] == 4 && values[1] == 3);
    wf_dataset_free(&d);
    assert_int_equal(open_text(&by_schema, "1;2\n3;4\n", &d, NULL), WF_OK);
    assert_int_equal(wf_dataset_records(d), 2);
    assert_int_equal(wf_dataset_gather(d, 0, &at, 1, values, NULL), WF_OK);
    assert_true(values[0] == 4 && values[1] == 3);
    wf_dataset_free(&d);
}

static void a_word_counts_as_its_place(void **state)
{
    const one o = {
        .columns = word, .n_columns = 1, .want = WF_I64, .schema = &colour, .n_schema = 1};
    const uint64_t at[] = {2, 0, 1};
    int64_t values[3];
    wf_dataset *d = NULL;

    (void)state;
    assert_int_equal(open_text(&o, "colour\ngreen\n red \n\"very \"\"blue\"\"\"\n", &d, NULL),
                     WF_OK);
    assert_int_equal(wf_dataset_gather(d, 0, at, 3, values, NULL), WF_OK);
    assert_int_equal(values[0], 2);
    assert_int_equal(values[1], 1);
    assert_int_equal(values[2], 0);
    wf_dataset_free(&d);
}

/* Lines of other than two cells are left out, wherever the pieces of the file end. */
static void bad_lines_may_be_skipped(void **state)
{
    static const char *const ends[] = {",1\n", "\n", ",1,2\n", ",\"a,\nb\"\n"};
    const size_t room = 2 << 20;
    const wf_column_spec schema[] = {{.name = "a"}, {.name = "b"}};
    wf_field_spec field = {.name = "x", .columns = number, .n_columns = 1, .want = WF_I64};
    wf_dataset_spec spec = {
        .format = "csv", .fields = &field, .n_fields = 1, .n_files = 1, .skips_bad_lines = true};
    char *text = malloc(room);
    const char *path;

    (void)state;
    for (int header = 0; header < 2; header++) {
        size_t n = (size_t)sprintf(text, "%s", header ? "a,b\n" : "");
        uint64_t good = 0, bad = 0, line, at = 0;
        wf_dataset *d = NULL;
        wf_err err = {0};

        for (int i = 0; n + 64 < room; i++) {
            n += i % 6 < 4 ? (size_t)sprintf(text + n, "%d%s", i, ends[i % 6])
                           : (size_t)sprintf(text + n, i % 6 == 4 ? "\n" : "\r\n");
            good += i % 6 == 0 || i % 6 == 3;
            bad += i % 6 == 1 || i % 6 == 2;
        }
        spec.header = header;
        spec.schema = schema;
        spec.n_schema = header ? 0 : 2;
        path = test_write(&folder, "s.csv", text, n);
        spec.files = &path;
        if (wf_dataset_open(&spec, &d, &err) != WF_OK)
            fail_msg("%s", err.what);
        for (at = 0; at < wf_dataset_records(d); at += 997) {
            int64_t value;

            assert_int_equal(wf_dataset_gather(d, 0, &at, 1, &value, &err), WF_OK);
            assert_int_equal(value, at / 2 * 6 + at % 2 * 3);
        }
        assert_int_equal(wf_dataset_records(d), good);
        assert_int_equal(wf_dataset_skipped(d, &path, &line), bad);
        assert_non_null(strstr(path, "s.csv"));
        assert_int_equal(line, header + 2);
        wf_dataset_free(&d);
        path = test_write(&folder, "s.csv", "a,b\n1\n", 6);
        spec.header = true;
        spec.n_schema = 0;
        assert_int_equal(wf_dataset_open(&spec, &d, &err), WF_INVALID);
        assert_non_null(strstr(err.what, "s.csv holds no records of 2 columns"));
    }
    free(text);
}

/* ---- many records ---- */

static char *files[3];

/* Record i: i, a float of it, text to be quoted, and a word. */
static size_t print_record(char *out, size_t room, uint64_t i)
{
    static const char *const notes[] = {
        "", "plain", "\"a, b\"", "\"line\r\nline\n\"", "\"quote \"\" quote\"", "\"\""};

    return (size_t)snprintf(out, room, "%" PRIu64 ",%s,%.9g,%s\n", i, notes[i * 7 % 6],
                            (double)i / 7, i % 3 == 2 ? "\"very \"\"blue\"\"\"" : colours[i % 3]);
}

/* A third of the records in each file: plain, gzip of several members, and without a last line
 * end. */
static int make_files(void **state)
{
    static const char head[] = "a,note,b,colour\n";
    size_t room = RECORDS / 3 * 80, n, cut;
    char *text = malloc(room);

    assert_non_null(text);
    set_up(state);
    for (int f = 0; f < 3; f++) {
        char name[32];

        snprintf(name, sizeof name, f == 1 ? "%d.csv.gz" : "%d.csv", f);
        n = (size_t)snprintf(text, room, head);
        for (uint64_t i = 0; i < RECORDS / 3; i++)
            n += print_record(text + n, room - n, (uint64_t)f * (RECORDS / 3) + i);
        if (f == 1) {
            gzFile gz;

            cut = n / 3;
            test_write_gz(&folder, name, text, cut);
            gz = gzopen(folder.file, "ab");
            assert_non_null(gz);
            assert_int_equal(gzwrite(gz, text + cut, (unsigned)(n - cut)), n - cut);
            assert_int_equal(gzclose(gz), Z_OK);
        } else {
            test_write(&folder, name, text, f == 2 ? n - 1 : n);
        }
        files[f] = strdup(folder.file);
    }
    free(text);
    return 0;
}

static int remove_files(void **state)
{
    for (int f = 0; f < 3; f++)
        free(files[f]);
    return tear_down(state);
}

static wf_dataset *open_all(void)
{
    static const char *const b[] = {"b"};
    const wf_field_spec fields[] = {
        {.name = "id", .columns = number, .n_columns = 1, .want = WF_I64},
        {.name = "x", .columns = b, .n_columns = 1, .is_row = true, .want = WF_F32},
        {.name = "y", .columns = word, .n_columns = 1, .want = WF_I32}};
    const wf_dataset_spec spec = {.format = "csv",
                                  .fields = fields,
                                  .n_fields = 3,
                                  .files = (const char *const *)files,
                                  .n_files = 3,
                                  .header = true,
                                  .schema = &colour,
                                  .n_schema = 1};
    wf_dataset *d = NULL;
    wf_err err = {0};

    if (wf_dataset_open(&spec, &d, &err) != WF_OK)
        fail_msg("%s", err.what);
    assert_int_equal(wf_dataset_records(d), RECORDS);
    return d;
}

static bool is_record(uint64_t i, int64_t id, float x, int32_t y)
{
    char text[32];

    snprintf(text, sizeof text, "%.9g", (double)i / 7);
    return id == (int64_t)i && x == (float)strtod(text, NULL) && y == (int32_t)(i % 3);
}

typedef struct gatherer {
    const wf_dataset *d;
    uint64_t seed;
    wf_status rc;
    uint64_t wrong;
} gatherer;

/* Anywhere, in no order: from half of the blocks there is a way back. */
static void *gather_anywhere(void *arg)
{
    gatherer *g = arg;
    wf_rng_key key = {g->seed, 1};
    uint64_t at[BATCH];
    int64_t id[BATCH];
    int32_t y[BATCH];
    float x[BATCH];

    for (uint64_t k = 0; g->rc == WF_OK && k < GATHERS; k++) {
        for (uint64_t i = 0; i < BATCH; i++)
            at[i] = wf_rng_below(key, k * BATCH + i, RECORDS);
        g->rc = wf_dataset_gather(g->d, 0, at, BATCH, id, NULL);
        if (g->rc == WF_OK)
            g->rc = wf_dataset_gather(g->d, 1, at, BATCH, x, NULL);
        if (g->rc == WF_OK)
            g->rc = wf_dataset_gather(g->d, 2, at, BATCH, y, NULL);
        for (uint64_t i = 0; i < BATCH; i++)
            g->wrong += !is_record(at[i], id[i], x[i], y[i]);
    }
    return NULL;
}

static void any_record_is_read_from_anywhere(void **state)
{
    wf_dataset *d = open_all();
    pthread_t threads[THREADS];
    gatherer g[THREADS];

    (void)state;
    for (uint32_t i = 0; i < THREADS; i++) {
        g[i] = (gatherer){.d = d, .seed = i};
        assert_int_equal(pthread_create(&threads[i], NULL, gather_anywhere, &g[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(g[i].rc, WF_OK);
        assert_int_equal(g[i].wrong, 0);
    }
    wf_dataset_free(&d);
}

static void an_epoch_has_each_record_once(void **state)
{
    wf_dataset *d = open_all();
    uint8_t *seen = calloc(RECORDS, 1);
    uint64_t moved = 0, at = 0;

    (void)state;
    assert_non_null(seen);
    for (uint32_t depth = 0; depth < 4; depth += 3) {
        wf_data_reader *r = NULL;
        const wf_batch *b;

        assert_int_equal(
            wf_data_reader_new(
                &(wf_data_reader_spec){
                    .dataset = d, .batch = 100, .seed = 5, .shuffle = true, .depth = depth},
                &r, NULL),
            WF_OK);
        assert_int_equal(wf_data_reader_open(r, depth, 0, 0, RECORDS, 0, NULL), WF_OK);
        memset(seen, 0, RECORDS);
        while (wf_data_reader_next(r, &b, NULL) == WF_OK && b) {
            for (uint64_t i = 0; i < b->n; i++, at++) {
                int64_t id = ((const int64_t *)b->fields[0].data)[i];

                assert_in_range(id, 0, RECORDS - 1);
                seen[id]++;
                moved += (uint64_t)id != at % RECORDS;
            }
            wf_data_reader_release(r, &b);
        }
        for (uint64_t i = 0; i < RECORDS; i++)
            assert_int_equal(seen[i], 1);
        wf_data_reader_free(&r);
    }
    assert_true(moved > RECORDS);
    free(seen);
    wf_dataset_free(&d);
}

/* ---- what is no good ---- */

static void columns_and_schemas_that_do_not_fit_are_refused(void **state)
{
    static const char *const twice[] = {"red", "red"}, *const aa[] = {"aa"}, *const aeg[] = {"aeg"};
    static const wf_column_spec twins = {.name = "colour", .words = twice, .n_words = 2};
    static const struct {
        const char *text;
        one o;
        wf_status status;
        const char *says;
    } rows[] = {
        {"", {number, 1}, WF_INVALID, "holds no records"},
        {"a,b\n", {number, 1}, WF_INVALID, "holds no records"},
        {"A,b\n1,2\n", {aa, 1}, WF_USAGE, "no column \"aa\""},
        {"age,b\n1,2\n", {aeg, 1}, WF_USAGE, "did you mean \"age\"?"},
        {"a,a\n1,2\n", {number, 1}, WF_USAGE, "two columns have the name \"a\""},
        {"a,\"b\n1,2\n", {number, 1}, WF_INVALID, "t.csv:1: quotes that open there do not close"},
        {"a,b\n1,\"2\n3,4\n", {number, 1}, WF_INVALID, "t.csv:2: quotes that open there"},
        {"a\"b,c\n\"1\",2\n", {number, 1}, WF_INVALID, "quote"},
        {"a\n1\n", {number, 1, .no_header = true}, WF_USAGE, "there are no columns"},
        {"a\n1\n", {number, 1, .schema = &colour, .n_schema = 1}, WF_USAGE, "no column \"colour\""},
        {"colour\nred\n",
         {word, 1, .schema = &twins, .n_schema = 1},
         WF_USAGE,
         "has the word \"red\" twice"},
    };

    (void)state;
    for (size_t i = 0; i < WF_COUNT(rows); i++) {
        wf_dataset *d = NULL;
        wf_err err = {0};

        assert_int_equal(open_text(&rows[i].o, rows[i].text, &d, &err), rows[i].status);
        assert_null(d);
        if (!strstr(err.what, rows[i].says))
            fail_msg("%zu: \"%s\" does not say \"%s\"", i, err.what, rows[i].says);
    }
}

static void a_bad_cell_is_told_with_its_line(void **state)
{
    static const struct {
        const char *text;
        one o;
        const char *says;
    } rows[] = {
        {"a,b\n1,2\nx,2\n",
         {number, 1, .want = WF_F32},
         "t.csv:3: column \"a\": \"x\" is not a number"},
        {"a\n1\n\n\n1.5\n",
         {number, 1, .want = WF_I64},
         "t.csv:5: column \"a\": \"1.5\" is no whole"},
        {"a,b\n1,2\n,2\n", {number, 1, .want = WF_F32}, "t.csv:3: column \"a\" is empty"},
        {"a\n1\nnan\n", {number, 1, .want = WF_F32}, "\"nan\" is not a number"},
        {"b,a\n\"1\n2\",1\n3,x\n", {number, 1, .want = WF_F32}, "t.csv:4: column \"a\""},
        {"a,b\n1,2\n1,2,3\n", {number, 1}, "t.csv:3: a row of 3 columns, where there are 2"},
        {"a,b\n1,2\n1\n", {number, 1}, "t.csv:3: a row of 1 columns, where there are 2"},
        {"a,b\n1,2\n1 \"x\",2\n", {number, 1}, "t.csv:3: a quote stands within a cell"},
        {"a,b\n1,2\n\"1\"x,2\n", {number, 1}, "t.csv:3: text follows the closing quote"},
        {"colour\nred\nbrown\n",
         {word, 1, .schema = &colour, .n_schema = 1},
         "t.csv:3: column \"colour\": \"brown\" is not one of its words"},
    };

    (void)state;
    for (size_t i = 0; i < WF_COUNT(rows); i++) {
        wf_dataset *d = NULL;
        wf_err err = {0};
        uint64_t at = 1;
        double value;

        assert_int_equal(open_text(&rows[i].o, rows[i].text, &d, &err), WF_OK);
        assert_int_equal(wf_dataset_gather(d, 0, &at, 1, &value, &err), WF_INVALID);
        if (!strstr(err.what, rows[i].says))
            fail_msg("%zu: \"%s\" does not say \"%s\"", i, err.what, rows[i].says);
        at = 0;
        assert_int_equal(wf_dataset_gather(d, 0, &at, 1, &value, &err), WF_OK);
        wf_dataset_free(&d);
    }
}

static void a_label_that_is_no_class_is_told_by_the_batch(void **state)
{
    const one o = {.columns = number, .n_columns = 1, .want = WF_I64};
    wf_dataset *d = NULL;
    wf_data_reader *r = NULL;
    const wf_batch *b;
    wf_err err = {0};

    (void)state;
    assert_int_equal(open_text(&o, "a\n0\n2\n3\n1\n", &d, NULL), WF_OK);
    assert_int_equal(wf_dataset_check_labels(d, 0, 3, NULL), WF_OK);
    assert_int_equal(
        wf_data_reader_new(&(wf_data_reader_spec){.dataset = d, .batch = 2, .depth = 2}, &r, NULL),
        WF_OK);
    assert_int_equal(wf_data_reader_open(r, 0, 0, 0, 4, 0, NULL), WF_OK);
    assert_int_equal(wf_data_reader_next(r, &b, &err), WF_OK);
    wf_data_reader_release(r, &b);
    assert_int_equal(wf_data_reader_next(r, &b, &err), WF_INVALID);
    assert_null(b);
    assert_non_null(strstr(err.what, "t.csv:4: the label is 3; there are 3 classes, 0 to 2"));
    assert_int_equal(wf_data_reader_next(r, &b, &err), WF_OK);
    assert_null(b);
    wf_data_reader_free(&r);
    wf_dataset_free(&d);
}

/* The last record first. */
static void share_backwards(void *pool, int64_t n, int64_t grain,
                            void (*fn)(void *arg, int64_t begin, int64_t end), void *arg)
{
    (void)pool, (void)grain;
    for (int64_t i = n; i > 0; i--)
        fn(arg, i - 1, i);
}

static void of_several_labels_that_are_no_class_the_first_is_told(void **state)
{
    const one o = {.columns = number, .n_columns = 1, .want = WF_I64};
    wf_dataset *d = NULL;
    wf_data_reader *r = NULL;
    const wf_batch *b;
    wf_err err = {0};

    (void)state;
    assert_int_equal(open_text(&o, "a\n0\n7\n3\n1\n", &d, NULL), WF_OK);
    assert_int_equal(wf_dataset_check_labels(d, 0, 3, NULL), WF_OK);
    assert_int_equal(
        wf_data_reader_new(
            &(wf_data_reader_spec){.dataset = d, .batch = 4, .threads = {NULL, share_backwards}},
            &r, NULL),
        WF_OK);
    assert_int_equal(wf_data_reader_open(r, 0, 0, 0, 4, 0, NULL), WF_OK);
    assert_int_equal(wf_data_reader_next(r, &b, &err), WF_INVALID);
    assert_non_null(strstr(err.what, "t.csv:3: the label is 7; there are 3 classes, 0 to 2"));
    wf_data_reader_free(&r);
    wf_dataset_free(&d);
}

static void a_label_between_classes_is_no_class(void **state)
{
    const one o = {.columns = number, .n_columns = 1, .want = WF_F32};
    const uint64_t at = 1;
    wf_dataset *d = NULL;
    wf_err err = {0};
    float label;

    (void)state;
    assert_int_equal(open_text(&o, "a\n0\n0.5\n", &d, NULL), WF_OK);
    assert_int_equal(wf_dataset_check_labels(d, 0, 3, NULL), WF_OK);
    assert_int_equal(wf_dataset_gather(d, 0, &at, 1, &label, &err), WF_INVALID);
    assert_non_null(strstr(err.what, "the label is 0.5; classes are whole numbers, 0 to 2"));
    wf_dataset_free(&d);
}

static void files_that_do_not_belong_together_are_refused(void **state)
{
    const one o = {.columns = number, .n_columns = 1};
    const char *paths[] = {strdup(test_write(&folder, "p.csv", "a,b\n1,2\n", 8)), NULL};
    wf_dataset *d = NULL;
    wf_err err = {0};

    (void)state;
    paths[1] = test_write(&folder, "q.csv", "b,a\n1,2\n", 8);
    assert_int_equal(open_one_of(&o, paths, 2, &d, &err), WF_INVALID);
    assert_non_null(strstr(err.what, "q.csv has another header than"));
    paths[1] = test_path(&folder, "none.csv");
    assert_int_equal(open_one_of(&o, paths, 2, &d, &err), WF_NOTFOUND);
    paths[1] = test_write(&folder, "r.csv.gz", "a,b\n1,2\n", 8);
    assert_int_equal(open_one_of(&o, paths, 2, &d, &err), WF_INVALID);
    assert_non_null(strstr(err.what, "does not hold gzip data"));
    free((char *)paths[0]);
}

static uint64_t digest_of(const char *const paths[], size_t n)
{
    const one o = {.columns = number, .n_columns = 1, .want = WF_F64};
    wf_dataset *d = NULL;
    uint64_t digest;

    assert_int_equal(open_one_of(&o, paths, n, &d, NULL), WF_OK);
    digest = wf_dataset_digest(d);
    wf_dataset_free(&d);
    return digest;
}

static void a_digest_tells_other_content(void **state)
{
    static const char first[] = "a\n10\n20\n", second[] = "a\n10\n30\n";
    const char *paths[2] = {strdup(test_write(&folder, "1.csv", first, sizeof first - 1)), NULL};
    uint64_t plain = digest_of(paths, 1), packed;

    (void)state;
    assert_true(plain != 0);
    test_write_gz(&folder, "1.csv.gz", (const uint8_t *)first, sizeof first - 1);
    paths[1] = test_path(&folder, "1.csv.gz");
    packed = digest_of(paths + 1, 1);
    assert_true(packed == plain);
    paths[1] = test_write(&folder, "2.csv", second, sizeof second - 1);
    assert_true(digest_of(paths + 1, 1) != plain);
    assert_true(digest_of(paths, 2) != plain);
    free((char *)paths[0]);
}

static void a_file_that_changes_is_noticed(void **state)
{
    const one o = {.columns = number, .n_columns = 1, .want = WF_F64};
    wf_dataset *d = NULL;
    wf_err err = {0};
    uint64_t at = 0;
    double value;

    (void)state;
    assert_int_equal(open_text(&o, "a\n10\n20\n", &d, NULL), WF_OK);
    test_write(&folder, "t.csv", "a\n10200\n", 8);
    assert_int_equal(wf_dataset_gather(d, 0, &at, 1, &value, &err), WF_INVALID);
    assert_non_null(strstr(err.what, "has changed since it was opened"));
    test_write(&folder, "t.csv", "a\n", 2);
    assert_int_equal(wf_dataset_gather(d, 0, &at, 1, &value, &err), WF_INVALID);
    assert_non_null(strstr(err.what, "has become shorter"));
    wf_dataset_free(&d);
}

/* A damaged file ends in an error, whatever byte it is. */
static void damaged_gzip_is_refused(void **state)
{
    const one o = {.columns = number, .n_columns = 1, .want = WF_F64};
    wf_rng_key key = {9, 1};
    uint8_t bytes[4096];
    char text[4000];
    size_t n = 0, size;
    FILE *f;

    (void)state;
    n += (size_t)snprintf(text, sizeof text, "a\n");
    for (int i = 0; n + 16 < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%d\n", i * i);
    size = test_write_gz(&folder, "d.csv.gz", text, n);
    f = fopen(folder.file, "rb");
    assert_non_null(f);
    assert_int_equal(fread(bytes, 1, size, f), size);
    fclose(f);
    for (uint64_t i = 0; i < 300; i++) {
        const char *path;
        wf_dataset *d = NULL;
        uint64_t at = wf_rng_below(key, 2 * i, size - 12) + 10; /* behind the header */
        uint8_t was = bytes[at];
        size_t left = i % 2 ? size : (size_t)wf_rng_below(key, 2 * i + 1, size);

        bytes[at] ^= (uint8_t)(i % 2 ? 1 << i / 2 % 8 : 0);
        path = test_write(&folder, "d.csv.gz", bytes, left);
        assert_int_equal(open_one_of(&o, &path, 1, &d, NULL), WF_INVALID);
        assert_null(d);
        bytes[at] = was;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_cell_may_be_filled),
        cmocka_unit_test(cells_are_read_as_the_rfc_has_them),
        cmocka_unit_test(columns_come_in_the_order_of_the_field),
        cmocka_unit_test(bad_lines_may_be_skipped),
        cmocka_unit_test(a_word_counts_as_its_place),
        cmocka_unit_test(any_record_is_read_from_anywhere),
        cmocka_unit_test(an_epoch_has_each_record_once),
        cmocka_unit_test(columns_and_schemas_that_do_not_fit_are_refused),
        cmocka_unit_test(a_bad_cell_is_told_with_its_line),
        cmocka_unit_test(a_label_that_is_no_class_is_told_by_the_batch),
        cmocka_unit_test(of_several_labels_that_are_no_class_the_first_is_told),
        cmocka_unit_test(a_label_between_classes_is_no_class),
        cmocka_unit_test(files_that_do_not_belong_together_are_refused),
        cmocka_unit_test(a_digest_tells_other_content),
        cmocka_unit_test(a_file_that_changes_is_noticed),
        cmocka_unit_test(damaged_gzip_is_refused),
    };

    return cmocka_run_group_tests(tests, make_files, remove_files);
}
