/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/table.c - a slice of a table against a plain model: only the rows that a push names
 * change, a copy stays what it was, and ids that cannot be change nothing. */
#include "common/base/rng.h"
#include "common/base/size.h"
#include "ps/dense.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Rows [FIRST, FIRST + ROWS) of a variable; WIDTH where any will do. */
enum { FIRST = 100, ROWS = 90, WIDTH = 6, WIDEST = 300, MOST = 60, ROUNDS = 100 };
/* Some are copied by lines, and several at once; the last is longer than what is updated at once.
 */
static const uint64_t widths[] = {1, WIDTH, 16, 64, WIDEST};

static wf_slice *open_table(const char *rule, uint64_t width, wf_opt *opt)
{
    const char *names[] = {"learning_rate"};
    const double values[] = {0.125};
    const wf_slice like = {
        .id = 3, .offset = FIRST * width, .count = ROWS * width, .row = width, .trainable = true};
    wf_slice *s;

    assert_int_equal(wf_opt_init(opt, rule, 1, names, values, NULL), WF_OK);
    assert_int_equal(wf_slice_new(&wf_slice_table, &like, opt, &s, NULL), WF_OK);
    return s;
}

typedef struct named {
    uint8_t ids[MOST * sizeof(uint64_t)];
    float values[MOST * WIDEST];
    wf_slice_part part;
} named;

static void name_rows(named *n, const uint64_t ids[], uint64_t rows, uint64_t width)
{
    for (uint64_t i = 0; i < rows; i++)
        wf_put_u64(n->ids + i * sizeof(uint64_t), ids[i]);
    n->part = (wf_slice_part){.incarnation = 7,
                              .step = 1,
                              .values = n->values,
                              .n = rows * width,
                              .rows = {.n = rows, .ids = n->ids}};
}

/* Some distinct rows in rising order, and a gradient for each. */
static void draw(named *n, wf_rng_key key, uint64_t round, uint64_t width)
{
    uint64_t ids[MOST], rows = 0;

    for (uint64_t r = 0; r < ROWS && rows < MOST; r++)
        if (wf_rng_f64(key, round * 100000 + r) < 0.7)
            ids[rows++] = FIRST + r;
    if (rows == 0)
        ids[rows++] = FIRST + round % ROWS;
    for (uint64_t i = 0; i < rows * width; i++)
        n->values[i] = (float)wf_rng_f64(key, round * 100000 + ROWS + i) - 0.5F;
    name_rows(n, ids, rows, width);
}

/* The same rule on arrays that hold every row. */
typedef struct model {
    float w[ROWS * WIDEST], slots[WF_MAX_SLOTS][ROWS * WIDEST];
} model;

static void update_model(model *m, const wf_opt *opt, const named *n, uint64_t updates,
                         uint64_t width)
{
    for (uint64_t i = 0; i < n->part.rows.n; i++) {
        uint64_t at = (wf_row_id(&n->part.rows, i) - FIRST) * width;
        float *slots[WF_MAX_SLOTS];

        for (uint32_t k = 0; k < wf_opt_n_slots(opt); k++)
            slots[k] = m->slots[k] + at;
        wf_opt_apply(opt, updates, width, m->w + at, n->values + i * width, slots);
    }
}

static void compare(const wf_slice *s, const wf_opt *opt, const model *m)
{
    size_t bytes = s->count * sizeof *m->w;
    wf_slice_array arrays[WF_SLICE_ARRAYS];
    uint32_t n = s->ops->save(s, arrays);

    assert_int_equal(n, 1 + wf_opt_n_slots(opt));
    assert_memory_equal(arrays[0].data, m->w, bytes);
    for (uint32_t k = 0; k + 1 < n; k++)
        assert_memory_equal(arrays[1 + k].data, m->slots[k], bytes);
}

static void compare_rows(const wf_slice *s, const named *n, const model *m)
{
    float out[MOST * WIDEST];

    s->ops->answer_rows(s, &n->part.rows, out);
    for (uint64_t i = 0; i < n->part.rows.n; i++)
        assert_memory_equal(out + i * s->row, m->w + (wf_row_id(&n->part.rows, i) - FIRST) * s->row,
                            s->row * sizeof *out);
}

static void run_rule(const char *rule, uint64_t width)
{
    static model m, then;
    const wf_rng_key key = {17, wf_rng_fold_str(0, rule)};
    wf_slice *s, *copy = NULL;
    wf_opt opt;
    named n;

    m = (model){0};
    s = open_table(rule, width, &opt);
    for (uint32_t k = 0; k < wf_opt_n_slots(&opt); k++)
        for (uint64_t i = 0; i < ROWS * width; i++)
            m.slots[k][i] = wf_opt_slot_initial(&opt, k);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        draw(&n, key, round, width);
        assert_int_equal(s->ops->check(s, &n.part, NULL), WF_OK);
        compare_rows(s, &n, &m);
        assert_int_equal(wf_slice_apply(s, &opt, &n.part, NULL), WF_OK);
        update_model(&m, &opt, &n, round + 1, width);
        compare_rows(s, &n, &m);
        if (copy)
            compare(copy, &opt, &then);
        if (round % 7 == 3) { /* of this instant, whatever comes */
            wf_slice_free(&copy);
            assert_int_equal(wf_slice_fork(s, &copy, NULL), WF_OK);
            then = m;
        }
    }
    compare(s, &opt, &m);
    assert_int_equal(s->updates, ROUNDS);
    wf_slice_free(&copy);
    wf_slice_free(&s);
}

static void a_table_is_what_a_plain_model_says(void **state)
{
    (void)state;
    for (const wf_rule *const *rule = wf_rules; *rule; rule++)
        for (size_t k = 0; !(*rule)->whole && k < WF_COUNT(widths); k++)
            run_rule((*rule)->name, widths[k]);
}

static void a_rule_with_norms_of_variables_has_no_tables(void **state)
{
    const wf_slice like = {.id = 3, .count = ROWS * WIDTH, .row = WIDTH, .trainable = true};
    wf_slice *s;
    wf_opt opt;
    wf_err err;

    (void)state;
    assert_int_equal(wf_opt_init(&opt, "lamb", 0, NULL, NULL, NULL), WF_OK);
    assert_int_equal(wf_slice_new(&wf_slice_table, &like, &opt, &s, &err), WF_INVALID);
    assert_string_equal(err.what,
                        "lamb takes norms over a whole variable, and slice 3 is of a table");
}

static void rows_that_cannot_be_are_refused(void **state)
{
    static const struct {
        uint64_t ids[2];
        wf_status rc;
    } bad[] = {{{FIRST - 1, FIRST}, WF_SHAPE},
               {{FIRST, FIRST + ROWS}, WF_SHAPE},
               {{FIRST, UINT64_MAX}, WF_SHAPE},
               {{FIRST + 1, FIRST + 1}, WF_PROTO},
               {{FIRST + 2, FIRST + 1}, WF_PROTO}};
    wf_slice *s;
    wf_opt opt;
    named n;

    (void)state;
    s = open_table("adagrad", WIDTH, &opt);
    for (size_t i = 0; i < WF_COUNT(bad); i++) {
        name_rows(&n, bad[i].ids, 2, WIDTH);
        assert_int_equal(s->ops->check(s, &n.part, NULL), bad[i].rc);
        assert_int_equal(s->ops->check_rows(s, &n.part.rows, NULL), bad[i].rc);
    }
    name_rows(&n, (uint64_t[]){FIRST, FIRST + 1}, 2, WIDTH);
    assert_int_equal(s->ops->check(s, &n.part, NULL), WF_OK);
    n.part.n--;
    assert_int_equal(s->ops->check(s, &n.part, NULL), WF_SHAPE);
    n.part.n = WIDTH; /* half a row each */
    assert_int_equal(s->ops->check(s, &n.part, NULL), WF_SHAPE);
    n.part.rows.n = 0;
    assert_int_equal(s->ops->check(s, &n.part, NULL), WF_PROTO);
    wf_slice_free(&s);
}

/* However a variable is cut into slices. */
static void first_values_go_by_the_place_alone(void **state)
{
    static const wf_distribution_kind kinds[] = {WF_CONSTANT, WF_UNIFORM, WF_TRUNCATED_NORMAL,
                                                 WF_NORMAL};
    static float whole[(FIRST + ROWS) * WIDTH];
    wf_opt opt;

    (void)state;
    assert_int_equal(wf_opt_init(&opt, "adagrad", 0, NULL, NULL, NULL), WF_OK);
    for (size_t i = 0; i < WF_COUNT(kinds); i++) {
        const wf_row_policy policy = {
            .seeded = true, .first = {kinds[i], 0.5, 0.25}, .seed = 9, .stream = 77};

        wf_distribution_fill(&policy.first, (wf_rng_key){9, 77}, 0, whole, WF_COUNT(whole));
        for (uint64_t first = FIRST; first < FIRST + ROWS; first += ROWS / 2) {
            const wf_slice like = {.offset = first * WIDTH,
                                   .count = ROWS / 2 * WIDTH,
                                   .row = WIDTH,
                                   .trainable = true,
                                   .policy = policy};
            wf_slice *s;

            assert_int_equal(wf_slice_new(&wf_slice_table, &like, &opt, &s, NULL), WF_OK);
            assert_int_equal(s->ops->load(s, NULL, true, NULL), WF_OK);
            assert_memory_equal(wf_slice_values(s), whole + first * WIDTH,
                                like.count * sizeof *whole);
            wf_slice_free(&s);
        }
    }
}

static void first_values_of_no_known_kind_are_refused(void **state)
{
    const wf_slice like = {.count = WIDTH,
                           .row = WIDTH,
                           .trainable = true,
                           .policy = {.seeded = true, .first = {WF_N_DISTRIBUTIONS, 0, 0}}};
    wf_slice *s;
    wf_opt opt;

    (void)state;
    assert_int_equal(wf_opt_init(&opt, "adagrad", 0, NULL, NULL, NULL), WF_OK);
    assert_int_equal(wf_slice_new(&wf_slice_table, &like, &opt, &s, NULL), WF_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_is_what_a_plain_model_says),
        cmocka_unit_test(a_rule_with_norms_of_variables_has_no_tables),
        cmocka_unit_test(rows_that_cannot_be_are_refused),
        cmocka_unit_test(first_values_go_by_the_place_alone),
        cmocka_unit_test(first_values_of_no_known_kind_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
