/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/tokens.c - plain text, lines and windows: what needs large files, bags or a file that
 * changes. tests/parity/text_tokens.py holds the tokens against a reference. */
#include "common/data/learnt.h"
#include "tests/unit/datasets.h"

static const char *const text_column[] = {"text"}, *const next_column[] = {"next"};

/* A data set of text: the field "x", and of windows "y". */
typedef struct prose {
    wf_map_step step;
    wf_field_spec fields[2];
    const char *paths[3];
    wf_dataset_spec spec;
} prose;

static void make_prose(prose *p, size_t n_files, wf_token_form tokens, uint64_t length,
                       uint64_t stride)
{
    p->step = (wf_map_step){.type = "text_vectorization", .tokens = tokens};
    for (int i = 0; i < 2; i++)
        p->fields[i] = (wf_field_spec){.name = i ? "y" : "x",
                                       .columns = i ? next_column : text_column,
                                       .n_columns = 1,
                                       .steps = &p->step,
                                       .n_steps = 1,
                                       .want = WF_I64};
    p->spec = (wf_dataset_spec){.format = "text",
                                .fields = p->fields,
                                .n_fields = length ? 2 : 1,
                                .files = p->paths,
                                .n_files = n_files,
                                .sequence_length = length,
                                .sequence_stride = stride};
}

static void write_file(prose *p, size_t i, const char *text, size_t n)
{
    char name[] = "0.txt";

    name[0] = (char)('0' + i);
    p->paths[i] = strdup(test_write(&folder, name, text, n));
    assert_non_null(p->paths[i]);
}

static void drop_prose(prose *p)
{
    for (size_t i = 0; i < p->spec.n_files; i++)
        free((char *)p->paths[i]);
}

static wf_dataset *open_prose(const prose *p)
{
    wf_dataset *d = NULL;
    wf_err err = {0};

    if (wf_dataset_open(&p->spec, &d, &err) != WF_OK)
        fail_msg("%s", err.what);
    return d;
}

static void refuse_prose(const prose *p, const char *says)
{
    wf_dataset *d = NULL;
    wf_err err = {0};

    assert_int_not_equal(wf_dataset_open(&p->spec, &d, &err), WF_OK);
    if (!strstr(err.what, says))
        fail_msg("\"%s\" does not say \"%s\"", err.what, says);
    assert_null(d);
}

static void fill(char *text, size_t n, unsigned from)
{
    for (size_t i = 0; i < n; i++)
        text[i] = (char)(33 + (i * i + from * 7919 + i / 97) % 90);
}

/* Blocks of windows lie over each other, also across files, and in any order of reading. */
static void windows_of_many_blocks_are_found(void **state)
{
    enum { N = 700001, M = 300007, LENGTH = 1000, STRIDE = 37 };
    const wf_token_form bytes = {.split = WF_SPLIT_BYTES};
    const size_t sizes[] = {N, 5, M};
    char *texts[3];
    uint64_t block, window, first[3], n = 0;
    prose p = {0};
    wf_dataset *d;

    (void)state;
    make_prose(&p, 3, bytes, LENGTH, STRIDE);
    for (unsigned i = 0; i < 3; i++) {
        texts[i] = malloc(sizes[i]);
        assert_non_null(texts[i]);
        fill(texts[i], sizes[i], i);
        write_file(&p, i, texts[i], sizes[i]);
        first[i] = n;
        n += sizes[i] > LENGTH ? (sizes[i] - LENGTH - 1) / STRIDE + 1 : 0;
    }
    d = open_prose(&p);
    assert_int_equal(wf_dataset_records(d), n);
    wf_dataset_blocks(d, &block, &window);
    assert_true(block > 1 && n / block >= 3);
    for (uint64_t k = 0; k < n; k += 1 + k % 13) {
        uint64_t at = k * 7919 % n;
        int file = at >= first[2] ? 2 : 0;
        const char *want = texts[file] + (at - first[file]) * STRIDE;
        static int64_t x[LENGTH], y[LENGTH];

        assert_int_equal(wf_dataset_gather(d, 0, &at, 1, x, NULL), WF_OK);
        assert_int_equal(wf_dataset_gather(d, 1, &at, 1, y, NULL), WF_OK);
        for (int i = 0; i < LENGTH; i++)
            if (x[i] != want[i] || y[i] != want[i + 1])
                fail_msg("record %d, byte %d: %d, %d", (int)at, i, (int)x[i], (int)y[i]);
    }
    wf_dataset_free(&d);
    for (int i = 0; i < 3; i++)
        free(texts[i]);
    drop_prose(&p);
}

/* The first windows are short, and those behind them long: blocks get fewer of them. */
static void blocks_are_bounded(void **state)
{
    enum { SHORT = 40000, LONG = 2000, GAP = 9000 };
    char *text = malloc(2 * SHORT + (size_t)LONG * GAP), *end = text;
    const uint64_t last = SHORT + LONG - 3;
    uint64_t block, window;
    int64_t x[2];
    prose p = {0};
    wf_dataset *d;

    (void)state;
    assert_non_null(text);
    for (int i = 0; i < SHORT; i++)
        end = (char *)memcpy(end, "a ", 2) + 2;
    for (int i = 0; i < LONG; i++) {
        memset(end, ' ', GAP);
        *end = i % 2 ? 'b' : 'c';
        end += GAP;
    }
    make_prose(&p, 1, (wf_token_form){.bins = 100}, 2, 1);
    write_file(&p, 0, text, (size_t)(end - text));
    free(text);
    d = open_prose(&p);
    assert_int_equal(wf_dataset_records(d), last + 1);
    wf_dataset_blocks(d, &block, &window);
    assert_true(block * GAP < (32 << 20));
    assert_int_equal(wf_dataset_gather(d, 0, &last, 1, x, NULL), WF_OK);
    assert_int_not_equal(x[0], x[1]);
    wf_dataset_free(&d);
    drop_prose(&p);
}

/* Words of the training windows, which what is held out has as well; y is numbered as x is. */
static void words_are_those_of_the_training_windows(void **state)
{
    static const char text[] = "b a b, c B a\nd d d d";
    const wf_token_form words = {.lowers = true, .strips = true};
    const uint64_t first = 0;
    wf_learnt rows[WF_LEARNT_MOST];
    wf_dataset_spec late;
    prose p = {0};
    int64_t x[3], y[3];
    wf_dataset *d;

    (void)state;
    make_prose(&p, 1, words, 3, 3);
    write_file(&p, 0, text, sizeof text - 1);
    p.spec.held_out = 0.3; /* of three windows the last */
    d = open_prose(&p);
    assert_int_equal(wf_dataset_records(d), 2);
    assert_int_equal(wf_dataset_learnt(d, rows), 2);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(rows[i].type, "text_vectorization");
        assert_int_equal(rows[i].n_words, 3);
        assert_string_equal(rows[i].words[0], "b");
        assert_string_equal(rows[i].words[1], "a");
        assert_string_equal(rows[i].words[2], "c");
    }
    assert_int_equal(wf_dataset_gather(d, 0, &first, 1, x, NULL), WF_OK);
    assert_int_equal(wf_dataset_gather(d, 1, &first, 1, y, NULL), WF_OK);
    assert_true(x[0] == 2 && x[1] == 3 && x[2] == 2 && y[0] == 3 && y[1] == 2 && y[2] == 4);
    wf_dataset_free(&d);
    late = p.spec;
    late.is_held_out = true;
    late.reference = &p.spec;
    assert_int_equal(wf_dataset_open(&late, &d, NULL), WF_OK);
    assert_int_equal(wf_dataset_gather(d, 0, &first, 1, x, NULL), WF_OK);
    assert_true(x[0] == 1 && x[1] == 1 && x[2] == 1);
    wf_dataset_free(&d);
    drop_prose(&p);
}

/* Tokens of a bag are filled up with what is no id, and cut where the job says so. */
static void lines_are_bags(void **state)
{
    static const char text[] = "a b a\n\nc a b c d\n", table[] = "text,n\n\"a \"\"b\"\" a\",1\n,1\n"
                                                                 "c a b c d,1\n";
    const wf_token_form words = {.lowers = true, .strips = true};
    const uint64_t at[] = {0, 1, 2};
    wf_err err = {0};
    int64_t x[3][4];
    prose p = {0};
    wf_dataset *d;

    (void)state;
    for (int csv = 0; csv < 2; csv++) {
        make_prose(&p, 1, words, 0, 0);
        p.fields[0].is_bag = true;
        p.fields[0].bag_most = 4;
        if (csv) {
            p.spec.format = "csv";
            p.spec.header = true;
        }
        write_file(&p, 0, csv ? table : text, csv ? sizeof table - 1 : sizeof text - 1);
        d = open_prose(&p);
        assert_true(wf_dataset_field(d, 0)->is_bag);
        assert_int_equal(wf_dataset_gather(d, 0, at, 2, x, NULL), WF_OK);
        assert_true(x[0][0] == 2 && x[0][1] == 4 && x[0][2] == 2 && x[0][3] == -1);
        assert_true(x[1][0] == -1 && x[1][3] == -1);
        assert_int_equal(wf_dataset_gather(d, 0, at + 2, 1, x, &err), WF_INVALID);
        assert_non_null(strstr(err.what, csv ? "0.txt:4: column \"text\": a bag of more than the 4"
                                             : "0.txt:3: a bag of more than the 4 values"));
        wf_dataset_free(&d);
        p.spec.cuts_bags = true;
        d = open_prose(&p);
        assert_int_equal(wf_dataset_gather(d, 0, at, 3, x, NULL), WF_OK);
        assert_true(x[2][0] == 3 && x[2][3] == 3);
        assert_int_equal(wf_dataset_cut(d), 1);
        wf_dataset_free(&d);
        p.step.tokens.length = 2; /* as Keras cuts: nothing is said of it */
        p.spec.cuts_bags = false;
        d = open_prose(&p);
        assert_int_equal(wf_dataset_gather(d, 0, at, 3, x, NULL), WF_OK);
        assert_true(x[2][0] == 3 && x[2][1] == 2 && x[2][2] == -1);
        wf_dataset_free(&d);
        drop_prose(&p);
    }
}

/* Words that no vocabulary holds are unknown, and end nothing. */
static void odd_words_are_unknown(void **state)
{
    char text[700];
    const uint64_t at = 0;
    int64_t x[4];
    prose p = {0};
    wf_dataset *d;

    (void)state;
    memset(text, 'w', sizeof text);
    memcpy(text + 300, " a\0b a ", 7);
    make_prose(&p, 1, (wf_token_form){.length = 4}, 0, 0);
    write_file(&p, 0, text, sizeof text);
    d = open_prose(&p);
    assert_int_equal(wf_dataset_gather(d, 0, &at, 1, x, NULL), WF_OK);
    assert_true(x[0] == 1 && x[1] == 1 && x[2] == 2 && x[3] == 1);
    wf_dataset_free(&d);
    drop_prose(&p);
}

static void what_does_not_fit_is_refused(void **state)
{
    const uint64_t at = 0;
    wf_err err = {0};
    int64_t x[2];
    prose p = {0};
    wf_dataset *d;

    (void)state;
    make_prose(&p, 1, (wf_token_form){.split = WF_SPLIT_BYTES, .length = 2}, 0, 0);
    write_file(&p, 0, "abc\n", 4);
    p.fields[0].n_steps = 0;
    refuse_prose(&p, "field \"x\" is text, and the first step of its map is not");
    p.fields[0].n_steps = 1;
    p.fields[0].columns = next_column;
    refuse_prose(&p, "field \"x\": lines have no \"next\"");
    p.fields[0].columns = (const char *const[]){"texts"};
    refuse_prose(&p, "text has the columns text, label and next, not \"texts\"");
    p.fields[0].columns = text_column;
    p.step.tokens.length = 0;
    refuse_prose(&p, "how many tokens a record has is not known");
    p.step.tokens.bins = 1;
    refuse_prose(&p, "max_tokens: 0, hash: 1");
    p.step.tokens = (wf_token_form){.split = (wf_split)7, .length = 2};
    refuse_prose(&p, "max_tokens: 0, hash: 0");
    p.spec.sequence_length = 2;
    refuse_prose(&p, "windows of 2 tokens, 0 apart");
    p.spec.sequence_stride = 1;
    p.step.tokens = (wf_token_form){.split = WF_SPLIT_BYTES};
    p.fields[0].is_bag = true;
    refuse_prose(&p, "windows are no bags");
    p.fields[0].is_bag = false;
    p.fields[0].columns = (const char *const[]){"label"};
    refuse_prose(&p, "windows have no label");
    p.fields[0].columns = text_column;
    p.step.tokens = (wf_token_form){.bins = 9};
    test_write(&folder, "0.txt", "a b c d\n", 8);
    d = open_prose(&p);
    test_write(&folder, "0.txt", "a      \n", 8);
    assert_int_equal(wf_dataset_gather(d, 0, &at, 1, x, &err), WF_INVALID);
    assert_non_null(strstr(err.what, "has changed since it was opened"));
    wf_dataset_free(&d);
    drop_prose(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_of_many_blocks_are_found),
        cmocka_unit_test(blocks_are_bounded),
        cmocka_unit_test(words_are_those_of_the_training_windows),
        cmocka_unit_test(lines_are_bags),
        cmocka_unit_test(odd_words_are_unknown),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
