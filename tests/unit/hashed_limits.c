/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/hashed_limits.c - an unbounded table with limits: which rows leave, against a plain
 * model, what memory is held, and what is refused. */
#include "tests/unit/hashed_model.h"

static void rows_leave_as_a_plain_model_says(void **state)
{
    (void)state;
    run("adagrad", (wf_row_policy){.evict_after = 20}, 4);
    run("sgd", (wf_row_policy){.max_rows = 30}, 5);
    run("sgd", (wf_row_policy){.max_rows = 3}, 6); /* fewer than a push names */
    run("ftrl", (wf_row_policy){.admit_after = 2, .evict_after = 40, .max_rows = 50}, 7);
    run("adam", (wf_row_policy){.admit_after = 4, .evict_after = 9}, 8);
    run("sgd", (wf_row_policy){.max_rows = 40, .by_frequency = true}, 11);
    run("sgd", (wf_row_policy){.max_rows = 3, .by_frequency = true}, 12);
    run("adagrad",
        (wf_row_policy){.admit_after = 2, .evict_after = 60, .max_rows = 30, .by_frequency = true},
        13);
}

/* Row 0 is used `often` times and, after so many eras, row 1 eight times and row 0 once; then a
 * third row comes. Which of the two is left. */
static int who_stays(int often, uint64_t eras)
{
    wf_slice *s;
    model *m = begin((wf_row_policy){.first = {WF_UNIFORM, 0, 0.05},
                                     .seed = SEED,
                                     .stream = STREAM,
                                     .max_rows = 2,
                                     .by_frequency = true},
                     &s);
    named n = {.values = {1}}; /* so that a row differs from one that has just begun */
    int left;

    for (int i = 0; i < often + 10; i++) {
        if (i == often)
            s->updates = m->updates = m->updates + eras * 1024;
        n.at[0] = i < often || i == often + 8 ? 0 : i < often + 8 ? 1 : 2;
        name_rows(&n, 1);
        push(s, m, &n);
    }
    assert_true(m->rows[2].stored && m->rows[0].stored != m->rows[1].stored);
    left = m->rows[1].stored;
    compare_pull(s, m);
    wf_slice_free(&s);
    free(m);
    return left;
}

/* The one with the higher count: it ends at 31, and is halved for each era of rest. */
static void a_row_that_was_used_more_often_stays(void **state)
{
    (void)state;
    assert_int_equal(who_stays(7, 0), 0); /* both 8 times: row 1 was used earlier */
    assert_int_equal(who_stays(6, 0), 1);
    assert_int_equal(who_stays(32, 0), 0);  /* none in five bits */
    assert_int_equal(who_stays(300, 2), 0); /* 31 >> 2 and one more: 8 */
    assert_int_equal(who_stays(300, 3), 1);
    assert_int_equal(who_stays(300, 7), 1);
    assert_int_equal(who_stays(300, 8), 0); /* a note tells eight eras apart */
    assert_int_equal(who_stays(300, 11), 1);
}

/* Eight rows; the digest of the slice then. */
static uint64_t fill(wf_slice *s, const model *m, named *n)
{
    for (int i = 0; i < 8; i++)
        n->at[i] = i;
    name_rows(n, 8);
    assert_int_equal(s->ops->check(s, &n->part, NULL), WF_OK);
    assert_int_equal(wf_slice_apply(s, &m->opt, &n->part, NULL), WF_OK);
    return s->ops->digest(s);
}

static void a_push_beyond_the_limit_changes_nothing(void **state)
{
    wf_slice *s;
    model *m = begin((wf_row_policy){.max_rows = 10, .fails_full = true}, &s);
    named n = {0};
    uint64_t digest;
    wf_err err;

    (void)state;
    digest = fill(s, m, &n);
    for (int i = 0; i < 5; i++)
        n.at[i] = 6 + i; /* two of them have rows */
    name_rows(&n, 5);
    assert_int_equal(s->ops->check(s, &n.part, &err), WF_FULL);
    assert_string_equal(err.what, "slice 3 of an unbounded table would have 11 rows, and may have "
                                  "10");
    assert_true(s->ops->digest(s) == digest);
    name_rows(&n, 4);
    assert_int_equal(s->ops->check(s, &n.part, NULL), WF_OK);
    wf_slice_free(&s);
    free(m);
}

/* Whatever the type, the width and the order of use: at the end of a push no more is held, and not
 * much less. */
static void a_limit_in_bytes_is_kept(void **state)
{
    const struct {
        wf_dtype dtype;
        uint64_t width, max_bytes;
        uint32_t admit_after;
        bool by_frequency;
    } rows[] = {{WF_F32, 16, 1 << 20, 1, false},
                {WF_BF16, 16, 1 << 20, 1, true},
                {WF_I8, 64, 1 << 20, 2, false},
                {WF_F16, 1024, 1 << 20, 1, false}};
    enum { EACH = 64, PUSHES = 600 };

    (void)state;
    for (size_t k = 0; k < WF_COUNT(rows); k++) {
        const wf_slice like = {.id = 3,
                               .count = rows[k].width,
                               .row = rows[k].width,
                               .trainable = true,
                               .policy = {.dtype = rows[k].dtype,
                                          .max_bytes = rows[k].max_bytes,
                                          .admit_after = rows[k].admit_after,
                                          .by_frequency = rows[k].by_frequency}};
        float *zeros = calloc(EACH * 1024, sizeof *zeros);
        uint64_t keys[EACH], most = 0;
        wf_slice *s = NULL;
        wf_opt opt;

        assert_int_equal(wf_opt_init(&opt, "adagrad", 0, NULL, NULL, NULL), WF_OK);
        assert_int_equal(wf_slice_new(&wf_slice_hashed, &like, &opt, &s, NULL), WF_OK);
        for (uint64_t i = 0; i < PUSHES; i++) {
            wf_slice_part part = {
                .values = zeros, .n = EACH * rows[k].width, .rows = {EACH, (const uint8_t *)keys}};

            for (uint64_t j = 0; j < EACH; j++) /* each id twice, and spread over the bucket */
                keys[j] = (j << 52) + (i / 2 * 0x9E3779B97F4A7C15u >> 12);
            assert_int_equal(s->ops->check(s, &part, NULL), WF_OK);
            assert_int_equal(wf_slice_apply(s, &opt, &part, NULL), WF_OK);
            assert_true(wf_slice_held(s) <= rows[k].max_bytes);
            most = WF_MAX(most, wf_slice_held(s));
        }
        assert_true(most > rows[k].max_bytes / 2);
        wf_slice_free(&s);
        free(zeros);
    }
}

/* With eviction off a push beyond it is refused whole, and the sentence says what to raise. */
static void a_push_beyond_a_limit_in_bytes_is_refused(void **state)
{
    wf_slice *s;
    model *m = begin((wf_row_policy){.max_bytes = 30032, .fails_full = true}, &s);
    named n = {0};
    uint64_t digest;
    wf_err err;

    (void)state;
    digest = fill(s, m, &n);
    for (int i = 0; i < 100; i++)
        n.at[i] = 8 + i;
    name_rows(&n, 100);
    assert_int_equal(s->ops->check(s, &n.part, &err), WF_FULL);
    assert_non_null(strstr(err.hint, "max_bytes"));
    assert_true(s->ops->digest(s) == digest);
    assert_true(wf_slice_held(s) <= m->policy.max_bytes);
    wf_slice_free(&s);
    free(m);
}

static void a_limit_below_one_row_is_refused(void **state)
{
    const wf_slice like = {
        .id = 3, .count = WIDTH, .row = WIDTH, .trainable = true, .policy = {.max_bytes = 60000}};
    wf_slice *s = NULL;
    wf_opt opt;
    wf_err err;

    (void)state;
    assert_int_equal(wf_opt_init(&opt, "adagrad", 0, NULL, NULL, NULL), WF_OK);
    assert_int_equal(wf_slice_new(&wf_slice_hashed, &like, &opt, &s, &err), WF_INVALID);
    assert_non_null(strstr(err.what, "slice 3 of an unbounded table may take 60000 bytes, and "
                                     "takes "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_leave_as_a_plain_model_says),
        cmocka_unit_test(a_row_that_was_used_more_often_stays),
        cmocka_unit_test(a_push_beyond_the_limit_changes_nothing),
        cmocka_unit_test(a_limit_in_bytes_is_kept),
        cmocka_unit_test(a_push_beyond_a_limit_in_bytes_is_refused),
        cmocka_unit_test(a_limit_below_one_row_is_refused),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
