/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/words.c - columns of words: hashed, or numbered by a vocabulary. */
#include "common/base/rng.h"
#include "common/data/learnt.h"
#include "tests/unit/datasets.h"

#include <xxhash.h>

enum { BINS = 1 << 20 };

static const char *const one[] = {"a"}, *const pair[] = {"b", "a"};

/* A data set of one field "x" of a csv file, with its steps. */
typedef struct table {
    wf_map_step steps[4];
    wf_field_spec field;
    const char *path;
    wf_dataset_spec spec;
} table;

static void make_table(table *t, const char *name, const char *text, bool is_pair, wf_map_step step)
{
    *t = (table){.steps = {step}, .path = strdup(test_write(&folder, name, text, strlen(text)))};
    assert_non_null(t->path);
    t->field = (wf_field_spec){.name = "x",
                               .columns = is_pair ? pair : one,
                               .n_columns = is_pair ? 2 : 1,
                               .is_row = is_pair,
                               .want = WF_I64,
                               .steps = t->steps,
                               .n_steps = 1};
    t->spec = (wf_dataset_spec){.format = "csv",
                                .fields = &t->field,
                                .n_fields = 1,
                                .files = &t->path,
                                .n_files = 1,
                                .header = true,
                                .delimiter = ','};
}

static void drop_table(table *t)
{
    free((char *)t->path);
}

static wf_dataset *open_table(const table *t)
{
    wf_dataset *d = NULL;
    wf_err err = {0};

    if (wf_dataset_open(&t->spec, &d, &err) != WF_OK)
        fail_msg("%s", err.what);
    return d;
}

static void refuse_table(const table *t, wf_status status, const char *says)
{
    wf_dataset *d = NULL;
    wf_err err = {0};
    wf_status rc = wf_dataset_open(&t->spec, &d, &err);

    if (rc != status || !strstr(err.what, says))
        fail_msg("%d, \"%s\" does not say \"%s\"", rc, err.what, says);
    assert_null(d);
}

static int64_t bin_of(const char *word)
{
    return (int64_t)(wf_rng_fold(0, XXH3_64bits(word, strlen(word))) % BINS);
}

/* A whole number is the bin that it was as a number, and words of the same bytes are one bin. */
static void words_are_hashed(void **state)
{
    static const char text[] = "a,b\nann,7\n\"ann\",08.5\n7,\"say \"\"x\"\"\"\n\xff,7\n,1\n";
    const wf_column_spec floats = {.name = "a", .dtype = WF_F32};
    int64_t bins[4][2]; /* of b and of a */
    wf_err err = {0};
    wf_dataset *d;
    table t;

    (void)state;
    make_table(&t, "h.csv", text, true, (wf_map_step){.type = "hash", .number = BINS});
    d = open_table(&t);
    assert_int_equal(wf_dataset_gather(d, 0, (uint64_t[]){0, 1, 2, 3}, 4, bins, &err), WF_OK);
    assert_int_equal(bins[0][1], bin_of("ann"));
    assert_int_equal(bins[1][1], bin_of("ann"));
    assert_int_equal(bins[1][0], bin_of("08.5"));
    assert_int_equal(bins[2][0], bin_of("say \"x\""));
    assert_int_equal(bins[3][1], bin_of("\xff"));
    assert_int_equal(bins[0][0], wf_rng_fold(0, 7) % BINS);
    assert_int_equal(bins[2][1], bins[0][0]);
    assert_int_equal(wf_dataset_gather(d, 0, (uint64_t[]){4}, 1, bins, &err), WF_OK);
    assert_int_equal(bins[0][1], bin_of("")); /* no letters are a word as well */
    wf_dataset_free(&d);
    t.spec.schema = &floats;
    t.spec.n_schema = 1;
    refuse_table(&t, WF_SHAPE, "hash: takes integers");
    drop_table(&t);
}

/* A schema says that a column holds words: then the bytes of a number count as well. */
static void columns_of_words_have_bins_of_their_own(void **state)
{
    static const char text[] = "7,07\n\"7\",7\n,\n 7 ,\t\nabcdefgh,abcdefghijklmnop q\n";
    const wf_column_spec words[] = {{.name = "b", .dtype = WF_U8}, {.name = "a", .dtype = WF_U8}};
    int64_t bins[5][2];
    wf_dataset *d;
    table t;

    (void)state;
    make_table(&t, "w.csv", text, true,
               (wf_map_step){.type = "hash", .number = BINS, .text = "separate"});
    t.spec.header = false;
    t.spec.schema = words;
    t.spec.n_schema = 2;
    d = open_table(&t);
    assert_int_equal(wf_dataset_gather(d, 0, (uint64_t[]){0, 1, 2, 3, 4}, 5, bins, NULL), WF_OK);
    assert_int_equal(bins[0][0], bin_of("7"));
    assert_int_equal(bins[0][1], BINS + bin_of("07"));
    assert_int_equal(bins[1][0], bin_of("7"));
    assert_int_equal(bins[1][1], BINS + bin_of("7"));
    assert_int_equal(bins[2][0], bin_of(""));
    assert_int_equal(bins[2][1], BINS + bin_of(""));
    assert_int_equal(bins[3][0], bin_of("7"));
    assert_int_equal(bins[3][1], BINS + bin_of(""));
    assert_int_equal(bins[4][0], bin_of("abcdefgh"));
    assert_int_equal(bins[4][1], BINS + bin_of("abcdefghijklmnop q"));
    assert_int_equal(wf_dataset_check_labels(d, 0, 2 * BINS, NULL), WF_OK);
    assert_int_equal(wf_dataset_check_labels(d, 0, 2 * BINS - 1, NULL), WF_INVALID);
    wf_dataset_free(&d);
    t.field.n_steps = 0;
    refuse_table(&t, WF_USAGE, "column \"b\" holds words");
    t.field.n_steps = 1;
    t.steps[0] = (wf_map_step){.type = "vocabulary", .number = 10};
    d = open_table(&t);
    assert_int_equal(wf_dataset_gather(d, 0, (uint64_t[]){0, 1, 2}, 3, bins, NULL), WF_OK);
    assert_int_equal(bins[0][0], 1);
    assert_int_equal(bins[0][1], 2);
    assert_int_equal(bins[1][1], 1);
    assert_int_equal(bins[2][1], 0);
    wf_dataset_free(&d);
    drop_table(&t);
}

/* However long a row is, its cells are found and counted. */
static void long_rows_are_counted(void **state)
{
    char text[2048], word[601] = {0};
    int64_t bins[2];
    wf_err err = {0};
    wf_dataset *d;
    size_t n;
    table t;

    (void)state;
    memset(word, 'x', 600);
    n = (size_t)snprintf(text, sizeof text, "b,a\n%s, yes \n,", word);
    memset(text + n, ',', 256);
    strcpy(text + n + 256, "\n");
    make_table(&t, "l.csv", text, true, (wf_map_step){.type = "hash", .number = BINS});
    d = open_table(&t);
    assert_int_equal(wf_dataset_gather(d, 0, (uint64_t[]){0}, 1, bins, NULL), WF_OK);
    assert_int_equal(bins[0], bin_of(word));
    assert_int_equal(bins[1], bin_of("yes"));
    assert_int_equal(wf_dataset_gather(d, 0, (uint64_t[]){1}, 1, bins, &err), WF_INVALID);
    assert_non_null(strstr(err.what, "l.csv:3: a row of 258 columns, where there are 2"));
    wf_dataset_free(&d);
    drop_table(&t);
}

/* ---- vocabulary ---- */

static void expect(const wf_dataset *d, const int64_t want[], size_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        int64_t got[2] = {0};

        assert_int_equal(wf_dataset_gather(d, 0, &i, 1, got, NULL), WF_OK);
        if (got[0] != want[i])
            fail_msg("record %d: %d, not %d", (int)i, (int)got[0], (int)want[i]);
    }
}

/* By count, and those of one count by their bytes: capitals come before small letters. */
static void frequent_words_come_first(void **state)
{
    static const char text[] = "a,b\nz,1\nb,1\nz,1\n,1\n\"B\",1\na,1\n\"say \"\"x\"\"\",1\nb,1\n";
    static const int64_t all[] = {2, 1, 2, 0, 3, 4, 5, 1}, two[] = {2, 1, 2, 0, 0, 0, 0, 1};
    uint64_t digest;
    wf_dataset *d;
    table t;

    (void)state;
    make_table(&t, "f.csv", text, false, (wf_map_step){.type = "vocabulary", .number = 10});
    d = open_table(&t);
    expect(d, all, 8);
    digest = wf_dataset_digest(d);
    wf_dataset_free(&d);
    t.steps[0].number = 2;
    d = open_table(&t);
    expect(d, two, 8);
    assert_true(wf_dataset_digest(d) != digest);
    wf_dataset_free(&d);
    drop_table(&t);
}

static void columns_of_a_field_share_words(void **state)
{
    wf_dataset *d;
    int64_t row[2], wide[4];
    table t;

    (void)state;
    make_table(&t, "s.csv", "a,b\nx,y\ny,\ny,x\n", true,
               (wf_map_step){.type = "vocabulary", .number = 10});
    t.steps[1] = (wf_map_step){.type = "one_hot", .number = 3};
    d = open_table(&t);
    assert_int_equal(wf_dataset_gather(d, 0, (uint64_t[]){0}, 1, row, NULL), WF_OK);
    assert_int_equal(row[0], 1); /* b: y, of 3 cells; a: x */
    assert_int_equal(row[1], 2);
    wf_dataset_free(&d);
    t.field.columns = one;
    t.field.n_columns = 1;
    t.field.n_steps = 2;
    d = open_table(&t);
    assert_int_equal(wf_dataset_gather(d, 0, (uint64_t[]){0}, 1, wide, NULL), WF_OK);
    assert_true(wide[0] == 0 && wide[1] == 0 && wide[2] == 1);
    wf_dataset_free(&d);
    drop_table(&t);
}

/* What is held out, and other files, have the words of the training records. */
static void others_have_the_words_of_the_training_records(void **state)
{
    static const int64_t held_out[] = {0, 2}, other[] = {1, 0, 0};
    const wf_map_step step = {.type = "vocabulary", .number = 10};
    wf_learnt rows[WF_LEARNT_MOST];
    wf_learnt_list kept = {0};
    wf_dataset_spec late;
    wf_dataset *d;
    table t, o;

    (void)state;
    make_table(&t, "t.csv", "a\nx\nx\ny\nx\nz\ny\n", false, step);
    make_table(&o, "o.csv", "a\nx\n\xff\nz\n", false, step);
    t.spec.held_out = 0.3;
    late = t.spec;
    late.is_held_out = true;
    late.reference = &t.spec;
    assert_int_equal(wf_dataset_open(&late, &d, NULL), WF_OK);
    expect(d, held_out, 2);
    wf_dataset_free(&d);
    o.spec.reference = &t.spec;
    d = open_table(&o);
    expect(d, other, 3);
    assert_int_equal(wf_learnt_keep(rows, wf_dataset_learnt(d, rows), &kept, NULL), WF_OK);
    wf_dataset_free(&d);
    assert_int_equal(kept.n, 1);
    assert_string_equal(kept.rows[0].type, "vocabulary");
    assert_int_equal(kept.rows[0].n_words, 2);
    assert_string_equal(kept.rows[0].words[0], "x");
    assert_string_equal(kept.rows[0].words[1], "y");

    /* Once they are kept nobody reads the training records. */
    o.spec.reference = NULL;
    assert_int_equal(wf_learnt_give(kept.rows, 1, "x", o.steps, 1, NULL), WF_OK);
    d = open_table(&o);
    expect(d, other, 3);
    wf_dataset_free(&d);
    wf_learnt_close(&kept);
    drop_table(&t);
    drop_table(&o);
}

static void words_of_a_file_are_in_its_order(void **state)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "w.txt holds no words"},
        {"\r\n\n", "w.txt holds no words"},
        {"x\ny\nx\n", "w.txt:3: the word \"x\" is there twice"},
        {"x\n\xff\n", "w.txt:2: \"\\xff\" is not UTF-8"},
        {"x\n\ny\n", "w.txt:2: a word of 0 bytes"},
    };
    static const int64_t want[] = {2, 0, 3, 0};
    char path[PATH_MAX];
    wf_dataset *d;
    table t;

    (void)state;
    snprintf(path, sizeof path, "%s",
             test_write(&folder, "w.txt", "\xef\xbb\xbfy\r\nx\r\nü u", 13));
    make_table(&t, "w.csv", "a\nx\nq\n\"ü u\"\n\"\"\n", false,
               (wf_map_step){.type = "vocabulary", .text = path});
    d = open_table(&t);
    expect(d, want, 4);
    wf_dataset_free(&d);
    for (size_t i = 0; i < WF_COUNT(rows); i++) {
        test_write(&folder, "w.txt", rows[i].text, strlen(rows[i].text));
        refuse_table(&t, WF_INVALID, rows[i].says);
    }
    t.steps[0].text = "/nowhere/words.txt";
    refuse_table(&t, WF_NOTFOUND, "/nowhere/words.txt");
    drop_table(&t);
}

static void what_a_vocabulary_does_not_fit_is_refused(void **state)
{
    static const wf_map_step vocabulary = {.type = "vocabulary", .number = 10};
    static const char *const twice[] = {"x", "x"};
    const wf_column_spec schema = {.name = "a", .dtype = WF_I64};
    char text[400] = "a\n";
    wf_dataset *d = NULL;
    wf_err err = {0};
    table t;

    (void)state;
    make_table(&t, "a.csv", "a\n1\n2\n", false, vocabulary);
    t.spec.schema = &schema;
    t.spec.n_schema = 1;
    refuse_table(&t, WF_USAGE, "column \"a\" has a schema, and its words a vocabulary");
    t.spec.n_schema = 0;
    t.steps[0] = (wf_map_step){.type = "log1p"};
    t.steps[1] = vocabulary;
    t.field.n_steps = 2;
    refuse_table(&t, WF_USAGE, "vocabulary: words are numbered as they are read");
    t.field.n_steps = 1;
    t.steps[0] = (wf_map_step){.type = "vocabulary"};
    refuse_table(&t, WF_USAGE, "vocabulary: 0 words; a whole number from 1 to 1048576");
    t.steps[0] = vocabulary;
    t.steps[0].words = twice;
    t.steps[0].n_words = 2;
    refuse_table(&t, WF_INVALID, "the word \"x\" is there twice");
    drop_table(&t);

    make_table(&t, "e.csv", "a,b\n,1\n,2\n", false, vocabulary);
    refuse_table(&t, WF_INVALID, "all of \"x\" is empty");
    drop_table(&t);
    make_table(&t, "u.csv", "a\nx\n\xe4\n", false, vocabulary);
    refuse_table(&t, WF_INVALID, "u.csv:3: column \"a\": \"\\xe4\" is not UTF-8");
    drop_table(&t);
    memset(text + 2, 'w', 256);
    make_table(&t, "l.csv", text, false, vocabulary);
    refuse_table(&t, WF_INVALID, "l.csv:2: column \"a\": a word of more than 255 bytes");
    drop_table(&t);
    text[2 + 255] = 0;
    make_table(&t, "m.csv", text, false, vocabulary);
    d = open_table(&t);
    expect(d, (int64_t[]){1}, 1);
    wf_dataset_free(&d);
    drop_table(&t);
    assert_int_equal(open_one("npy", "none.npy", &vocabulary, 1, WF_NONE, &d, &err), WF_USAGE);
    assert_non_null(strstr(err.what, "data of the format \"npy\" has no words"));
}

/* One more than there may be: the error names the column, and what takes any words. */
static void too_many_words_are_refused(void **state)
{
    size_t n = 0, size = (size_t)(WF_LEARNT_WORDS + 2) * 9;
    char *text = malloc(size);
    wf_dataset *d = NULL;
    wf_err err = {0};
    table t;

    (void)state;
    assert_non_null(text);
    n += (size_t)snprintf(text, size, "a\n");
    for (int i = 0; i <= WF_LEARNT_WORDS; i++)
        n += (size_t)snprintf(text + n, size - n, "w%x\n", i);
    make_table(&t, "n.csv", text, false, (wf_map_step){.type = "vocabulary", .number = 10});
    assert_int_equal(wf_dataset_open(&t.spec, &d, &err), WF_FULL);
    assert_non_null(
        strstr(err.what, "n.csv:1048578: column \"a\": more than 1048576 different words"));
    assert_non_null(strstr(err.hint, "hash: N"));
    drop_table(&t);
    text[n - strlen("w100000\n")] = 0;
    make_table(&t, "n.csv", text, false, (wf_map_step){.type = "vocabulary", .number = 10});
    d = open_table(&t);
    wf_dataset_free(&d);
    drop_table(&t);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_hashed),
        cmocka_unit_test(columns_of_words_have_bins_of_their_own),
        cmocka_unit_test(long_rows_are_counted),
        cmocka_unit_test(frequent_words_come_first),
        cmocka_unit_test(columns_of_a_field_share_words),
        cmocka_unit_test(others_have_the_words_of_the_training_records),
        cmocka_unit_test(words_of_a_file_are_in_its_order),
        cmocka_unit_test(what_a_vocabulary_does_not_fit_is_refused),
        cmocka_unit_test(too_many_words_are_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
