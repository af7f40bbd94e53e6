/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/words.c - columns of words: hashed, or numbered by a vocabulary. */
#include "common/base/rng.h"
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
    assert_int_equal(wf_dataset_gather(d, 0, (uint64_t[]){4}, 1, bins, &err), WF_INVALID);
    assert_non_null(strstr(err.what, "h.csv:6: column \"a\" is empty"));
    wf_dataset_free(&d);
    t.spec.schema = &floats;
    t.spec.n_schema = 1;
    refuse_table(&t, WF_SHAPE, "hash: takes integers");
    drop_table(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_hashed),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
