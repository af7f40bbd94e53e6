/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/bags.c - records of any number of values as rows of one length, in libsvm and csv:
 * what fills them up, what is too long, and damage. tests/cluster/bag_forms.py has tfrecord too. */
#include "common/base/rng.h"
#include "common/base/size.h"
#include "tests/unit/datasets.h"

enum { MOST = 3 };

static const char *const indices[] = {"indices"}, *const values[] = {"values"};
static const char *const tags[] = {"tags"}, *const weights[] = {"w"};

/* Ids and weights of libsvm, or of csv where `csv` says so. */
typedef struct bags {
    bool csv, zero_based, cuts;
    uint64_t most, features;
    const wf_map_step *step; /* of the ids */
} bags;

static wf_status open_path(const bags *b, const char *path, wf_dataset **d, wf_err *err)
{
    const wf_field_spec fields[] = {{.name = "ids",
                                     .columns = b->csv ? tags : indices,
                                     .n_columns = 1,
                                     .is_bag = true,
                                     .bag_most = b->most,
                                     .steps = b->step,
                                     .n_steps = b->step != NULL,
                                     .want = WF_I64},
                                    {.name = "w",
                                     .columns = b->csv ? weights : values,
                                     .n_columns = 1,
                                     .is_bag = true,
                                     .bag_most = b->most,
                                     .bag_ids = "ids",
                                     .want = WF_F32}};

    return wf_dataset_open(&(wf_dataset_spec){.format = b->csv ? "csv" : "libsvm",
                                              .fields = fields,
                                              .n_fields = 2,
                                              .files = &path,
                                              .n_files = 1,
                                              .header = true,
                                              .features = b->features,
                                              .zero_based = b->zero_based,
                                              .cuts_bags = b->cuts},
                           d, err);
}

static wf_dataset *open_text(const bags *b, const char *text)
{
    const char *path = test_write(&folder, "t", text, strlen(text));
    wf_dataset *d = NULL;
    wf_err err = {0};

    if (open_path(b, path, &d, &err) != WF_OK)
        fail_msg("%s", err.what);
    return d;
}

static void check(const wf_dataset *d, uint64_t at, const int64_t ids[MOST], const float w[MOST])
{
    int64_t got_ids[MOST];
    float got[MOST];

    assert_int_equal(wf_dataset_gather(d, 0, &at, 1, got_ids, NULL), WF_OK);
    assert_int_equal(wf_dataset_gather(d, 1, &at, 1, got, NULL), WF_OK);
    assert_memory_equal(got_ids, ids, sizeof got_ids);
    assert_memory_equal(got, w, sizeof got);
}

static void bags_are_filled_up(void **state)
{
    static const char *const texts[] = {"1 1:2 4:.5\n0\n1 1000001:1 2000000:3 3000000:4 # x\n",
                                        "tags,w\n0|3,2|.5\n,\n1000000| 1999999 |2999999,1|3|4\n"};

    (void)state;
    for (int csv = 0; csv < 2; csv++) {
        const bags b = {.csv = csv, .most = MOST};
        wf_dataset *d = open_text(&b, texts[csv]);

        assert_int_equal(wf_dataset_field(d, 0)->dims[0], MOST);
        check(d, 0, (const int64_t[]){0, 3, -1}, (const float[]){2, .5F, 0});
        check(d, 1, (const int64_t[]){-1, -1, -1}, (const float[]){0, 0, 0});
        check(d, 2, (const int64_t[]){1000000, 1999999, 2999999}, (const float[]){1, 3, 4});
        assert_int_equal(wf_dataset_cut(d), 0);
        wf_dataset_free(&d);
    }
}

static void the_longest_line_is_found(void **state)
{
    const bags b = {.zero_based = true};
    wf_dataset *d = open_text(&b, "1 0:1\n1 0:1 2:1 5:1\n1 7:1 8:2\n");

    (void)state;
    check(d, 0, (const int64_t[]){0, -1, -1}, (const float[]){1, 0, 0});
    check(d, 2, (const int64_t[]){7, 8, -1}, (const float[]){1, 2, 0});
    wf_dataset_free(&d);
}

static void long_bags_are_cut_or_refused(void **state)
{
    static const char *const texts[] = {"1 1:1 2:2 3:3 4:4\n", "tags,w\n0|1|2|3,1|2|3|4\n"};

    (void)state;
    for (int csv = 0; csv < 2; csv++)
        for (int cuts = 0; cuts < 2; cuts++) {
            const bags b = {.csv = csv, .cuts = cuts, .most = MOST};
            wf_dataset *d = open_text(&b, texts[csv]);
            const uint64_t at = 0;
            int64_t ids[MOST];
            wf_err err = {0};

            if (cuts) {
                check(d, 0, (const int64_t[]){0, 1, 2}, (const float[]){1, 2, 3});
                assert_int_equal(wf_dataset_cut(d), 2);
            } else {
                assert_int_equal(wf_dataset_gather(d, 0, &at, 1, ids, &err), WF_INVALID);
                assert_non_null(strstr(err.what, "more than the 3 values"));
            }
            wf_dataset_free(&d);
        }
}

/* The hash of an id in a bag is that of the same id in a field of its own. */
static void ids_are_hashed_and_the_rest_is_not(void **state)
{
    const wf_map_step hash = {.type = "hash", .number = 50}, all = {.type = "hash"};
    const wf_map_step *const steps[] = {&hash, &all};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(steps); i++) {
        const bags b = {.csv = true, .most = MOST, .step = steps[i]};
        const char *path = test_write(&folder, "one", "tags\nx\n7\n", 9);
        const wf_field_spec field = {.name = "x",
                                     .columns = tags,
                                     .n_columns = 1,
                                     .steps = steps[i],
                                     .n_steps = 1,
                                     .want = WF_I64};
        wf_dataset *d = NULL, *one = NULL;
        const uint64_t at[] = {0, 1};
        int64_t ids[MOST], own[2];
        wf_err err = {0};

        assert_int_equal(wf_dataset_open(&(wf_dataset_spec){.format = "csv",
                                                            .fields = &field,
                                                            .n_fields = 1,
                                                            .files = &path,
                                                            .n_files = 1,
                                                            .header = true},
                                         &one, &err),
                         WF_OK);
        assert_int_equal(wf_dataset_gather(one, 0, at, 2, own, &err), WF_OK);
        wf_dataset_free(&one);
        d = open_text(&b, "tags,w\nx|7,1|1\n");
        assert_int_equal(wf_dataset_gather(d, 0, at, 1, ids, &err), WF_OK);
        assert_true(ids[0] == own[0] && ids[1] == own[1] && ids[2] == -1);
        wf_dataset_free(&d);
    }
}

static void what_is_no_bag_is_named(void **state)
{
    static const struct {
        bags b;
        uint32_t field;
        const char *line, *says;
    } cases[] = {
        {{.most = MOST}, 0, "1 2:1 1:1", "the index 1 stands behind 2"},
        {{.most = MOST}, 0, "1 x:1", "\"x:1\" is no pair"},
        {{.most = MOST}, 1, "1 1:x", "\"1:x\" is no pair"},
        {{.most = MOST}, 1, "1 1", "\"1\" is no pair"},
        {{.most = MOST, .features = 9}, 0, "1 10:1", "the index 10 is beyond the 9 features"},
        {{.csv = true, .most = MOST}, 0, "-1,1", "column \"tags\": the id -1 of a bag is below 0"},
        {{.csv = true, .most = MOST}, 0, "1|,1|1", "column \"tags\" is empty"},
        {{.csv = true, .most = MOST},
         1,
         "1,1|2",
         "column \"w\" has 2 weights, and column \"tags\" 1"},
        {{.csv = true, .most = MOST}, 1, ",1", "column \"w\" has 1 weights, and column \"tags\" 0"},
        {{.csv = true, .most = MOST}, 0, "1,1,1", "a row of 3 columns, where there are 2"},
    };

    (void)state;
    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        uint64_t at = 0;
        char text[64], room[64];
        wf_dataset *d;
        wf_err err = {0};

        snprintf(text, sizeof text, "%s%s\n", cases[i].b.csv ? "tags,w\n" : "", cases[i].line);
        d = open_text(&cases[i].b, text);
        assert_int_equal(wf_dataset_gather(d, cases[i].field, &at, 1, room, &err), WF_INVALID);
        if (!strstr(err.what, cases[i].says) || !strstr(err.what, "/t:"))
            fail_msg("%s: %s", cases[i].line, err.what);
        wf_dataset_free(&d);
    }
}

/* Any bytes give a record or an error, and nothing is written beside it. */
static void damaged_lines_are_read_or_refused(void **state)
{
    static const char *const texts[] = {"1 1:2 4:.5 7:1\n0 2:1 900:1\n",
                                        "tags,w\n0|3|5,2|.5|1\n7,1\n"};

    (void)state;
    for (uint64_t i = 0; i < 600; i++) {
        const bags b = {.csv = i % 2, .most = MOST, .cuts = i % 3 == 0};
        char text[64];
        size_t n = strlen(texts[i % 2]), from = b.csv ? 7 : 0;
        int64_t room[MOST];
        const char *path;
        wf_dataset *d = NULL;

        memcpy(text, texts[i % 2], n);
        for (uint64_t k = 0; k < 3; k++) {
            uint64_t draw = wf_rng_u64((wf_rng_key){i, k}, 0);

            text[from + draw % (n - from)] = "0123456789|,:\n\"# -.x"[draw / 64 % 20];
        }
        path = test_write(&folder, "t", text, n - i % 5);
        if (open_path(&b, path, &d, NULL) != WF_OK)
            continue;
        for (uint64_t at = 0; at < wf_dataset_records(d); at++)
            for (uint32_t f = 0; f < 2; f++)
                assert_true(wf_dataset_gather(d, f, &at, 1, room, NULL) != WF_NOMEM);
        wf_dataset_free(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bags_are_filled_up),
        cmocka_unit_test(the_longest_line_is_found),
        cmocka_unit_test(long_bags_are_cut_or_refused),
        cmocka_unit_test(ids_are_hashed_and_the_rest_is_not),
        cmocka_unit_test(what_is_no_bag_is_named),
        cmocka_unit_test(damaged_lines_are_read_or_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
