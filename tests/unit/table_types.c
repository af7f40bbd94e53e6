/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/table_types.c - a slice of a table whose values have fewer bits, against a plain
 * model: pushes, pulls, copies, and states that are saved and loaded, also into other slices and as
 * another type. */
#include "common/base/rng.h"
#include "common/base/size.h"
#include "ps/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FIRST = 100, ROWS = 40, WIDEST = 300, ROUNDS = 60, ROUNDING = 99 };

static const wf_dtype dtypes[] = {WF_F32, WF_BF16, WF_F16, WF_I8};
/* Rows side by side in a block, one of odd bytes, and one that is longer than a block. */
static const uint64_t widths[] = {1, 7, 16, WIDEST};

static wf_slice *open_rows(wf_dtype dtype, uint64_t width, uint64_t first, uint64_t rows,
                           const wf_opt *opt)
{
    const wf_slice like = {.id = 3,
                           .offset = first * width,
                           .count = rows * width,
                           .row = width,
                           .trainable = true,
                           .policy = {.seeded = true,
                                      .first = {WF_UNIFORM, 0.25, 0.5},
                                      .seed = 9,
                                      .stream = 77,
                                      .dtype = dtype,
                                      .rounding = ROUNDING}};
    wf_slice *s = NULL;

    assert_int_equal(wf_slice_new(&wf_slice_table, &like, opt, &s, NULL), WF_OK);
    return s;
}

/* ---- the model: each row by itself ---- */

typedef struct model_row {
    float w[WIDEST], slots[WF_MAX_SLOTS][WIDEST]; /* w: what the held bytes say */
    uint8_t held[WIDEST * sizeof(float)];
    float scale;
} model_row;

static model_row rows[ROWS];

static void begin_model(wf_dtype dtype, uint64_t width, const wf_opt *opt)
{
    const wf_distribution first = {WF_UNIFORM, 0.25, 0.5};

    for (uint64_t r = 0; r < ROWS; r++) {
        wf_distribution_fill(&first, (wf_rng_key){9, 77}, (FIRST + r) * width, rows[r].w, width);
        wf_row_values_round(dtype, rows[r].w, width, rows[r].held, &rows[r].scale);
        wf_row_values_read(dtype, rows[r].held, &rows[r].scale, width, rows[r].w);
        for (uint32_t k = 0; k < wf_opt_n_slots(opt); k++)
            for (uint64_t i = 0; i < width; i++)
                rows[r].slots[k][i] = wf_opt_slot_initial(opt, k);
    }
}

static void update_model(wf_dtype dtype, uint64_t width, const wf_opt *opt, uint64_t updates,
                         uint64_t r, const float gradient[])
{
    wf_draw draw = wf_draw_of(wf_rng_fold(wf_rng_fold(ROUNDING, updates), FIRST + r));
    float *slots[WF_MAX_SLOTS];

    for (int k = 0; k < WF_MAX_SLOTS; k++)
        slots[k] = rows[r].slots[k];
    wf_opt_apply(opt, updates, width, rows[r].w, gradient, slots);
    wf_row_values_draw(dtype, rows[r].w, width, draw, 0, rows[r].held, &rows[r].scale);
    wf_row_values_read(dtype, rows[r].held, &rows[r].scale, width, rows[r].w);
}

/* ---- pushes and pulls ---- */

typedef struct named {
    uint8_t ids[ROWS * sizeof(uint64_t)];
    float values[ROWS * WIDEST];
    wf_slice_part part;
} named;

static void draw_rows(named *n, wf_rng_key key, uint64_t round, uint64_t width)
{
    uint64_t count = 0;

    for (uint64_t r = 0; r < ROWS; r++)
        if (r == round % ROWS || wf_rng_f64(key, round * 100000 + r) < 0.4)
            wf_put_u64(n->ids + count++ * sizeof(uint64_t), FIRST + r);
    for (uint64_t i = 0; i < count * width; i++)
        n->values[i] = (float)wf_rng_f64(key, round * 100000 + ROWS + i) - 0.5F;
    n->part = (wf_slice_part){.values = n->values, .n = count * width, .rows = {count, n->ids}};
}

static void compare_pull(const wf_slice *s, uint64_t width)
{
    static float out[ROWS * WIDEST];
    uint64_t first = s->offset / width, n = s->count / width;
    uint8_t ids[ROWS * sizeof(uint64_t)];
    const wf_rows all = {n, ids};

    for (uint64_t i = 0; i < n; i++)
        wf_put_u64(ids + i * sizeof(uint64_t), first + i);
    assert_int_equal(s->ops->check_rows(s, &all, NULL), WF_OK);
    s->ops->answer_rows(s, &all, out);
    for (uint64_t i = 0; i < n; i++)
        assert_memory_equal(out + i * width, rows[first - FIRST + i].w, width * sizeof(float));
}

/* ---- a state that is saved and loaded ---- */

static wf_dtype dtype_of_copy(void *arg, const wf_slice *s)
{
    (void)s;
    return wf_slice_dtype(arg);
}

static const wf_slice_array *find_array(const wf_slice_array arrays[], uint32_t n, const char *slot)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(arrays[i].slot ? arrays[i].slot : "", slot ? slot : "") == 0)
            return &arrays[i];
    return NULL;
}

/* What a checkpoint of the copy would give to a slice of some of its rows. */
static wf_status read_copy(void *arg, const wf_slice *s, const char *slot, wf_dtype as,
                           uint64_t first, void *out, uint64_t n, wf_err *err)
{
    const wf_slice *copy = arg;
    wf_slice_array arrays[WF_SLICE_ARRAYS];
    uint32_t n_arrays = copy->ops->save(copy, arrays);
    const wf_slice_array *a = find_array(arrays, n_arrays, slot);
    bool scale = slot && strcmp(slot, "scale") == 0;
    uint64_t at = s->offset - copy->offset + first, width = wf_dtype_size(as);

    (void)err;
    assert_non_null(a);
    if (scale)
        at = (s->offset - copy->offset) / s->row + first;
    assert_true((at + n) * wf_dtype_size(a->dtype) <= a->bytes);
    if (a->dtype == as) {
        memcpy(out, (const uint8_t *)a->data + at * width, n * width);
        return WF_OK;
    }
    assert_true(!slot && as == WF_F32 && at % s->row == 0 && n % s->row == 0);
    for (uint64_t i = 0; i < n; i += s->row) {
        const wf_slice_array *scales = find_array(arrays, n_arrays, "scale");

        wf_row_values_read(a->dtype, (const uint8_t *)a->data + (at + i) * wf_dtype_size(a->dtype),
                           scales ? (const float *)scales->data + (at + i) / s->row : NULL, s->row,
                           (float *)out + i);
    }
    return WF_OK;
}

static wf_slice *load(const wf_slice *from, wf_dtype dtype, uint64_t first, uint64_t n,
                      const wf_opt *opt)
{
    wf_slice *copy = NULL, *s = open_rows(dtype, from->row, first, n, opt);
    wf_slice_source source = {.dtype = dtype_of_copy, .read = read_copy};

    assert_int_equal(wf_slice_fork(from, &copy, NULL), WF_OK);
    source.arg = copy;
    s->updates = from->updates;
    assert_int_equal(s->ops->load(s, &source, false, NULL), WF_OK);
    wf_slice_free(&copy);
    return s;
}

/* The same rows in two slices, as another number of ps would have them. */
static void cut_in_two(const wf_slice *s, const wf_opt *opt)
{
    wf_slice *low = load(s, wf_slice_dtype(s), FIRST, ROWS / 3, opt);
    wf_slice *high = load(s, wf_slice_dtype(s), FIRST + ROWS / 3, ROWS - ROWS / 3, opt);

    compare_pull(low, s->row);
    compare_pull(high, s->row);
    wf_slice_free(&low);
    wf_slice_free(&high);
}

static void reload(wf_slice **s, const wf_opt *opt)
{
    wf_slice *fresh = load(*s, wf_slice_dtype(*s), FIRST, ROWS, opt);

    assert_true(fresh->ops->digest(fresh) == (*s)->ops->digest(*s));
    wf_slice_free(s);
    *s = fresh;
}

static void run(wf_dtype dtype, const char *rule, uint64_t width)
{
    const wf_rng_key key = {width, wf_rng_fold_str(dtype, rule)};
    static named n;
    wf_slice *s, *copy = NULL;
    uint64_t digest = 0;
    wf_opt opt;

    assert_int_equal(wf_opt_init(&opt, rule, 0, NULL, NULL, NULL), WF_OK);
    s = open_rows(dtype, width, FIRST, ROWS, &opt);
    assert_int_equal(s->ops->load(s, NULL, true, NULL), WF_OK);
    begin_model(dtype, width, &opt);
    compare_pull(s, width);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        draw_rows(&n, key, round, width);
        assert_int_equal(s->ops->check(s, &n.part, NULL), WF_OK);
        assert_int_equal(wf_slice_apply(s, &opt, &n.part, NULL), WF_OK);
        for (uint64_t i = 0; i < n.part.rows.n; i++)
            update_model(dtype, width, &opt, s->updates, wf_row_id(&n.part.rows, i) - FIRST,
                         n.values + i * width);
        compare_pull(s, width);
        if (copy)
            assert_true(copy->ops->digest(copy) == digest);
        if (round % 9 == 4) { /* of this instant, whatever comes */
            wf_slice_free(&copy);
            assert_int_equal(wf_slice_fork(s, &copy, NULL), WF_OK);
            digest = s->ops->digest(s);
        }
        if (round % 13 == 7)
            reload(&s, &opt);
    }
    cut_in_two(s, &opt);
    wf_slice_free(&copy);
    wf_slice_free(&s);
}

static void a_table_is_what_a_plain_model_says(void **state)
{
    (void)state;
    for (size_t d = 0; d < WF_COUNT(dtypes); d++)
        for (size_t k = 0; k < WF_COUNT(widths); k++) {
            run(dtypes[d], "adagrad", widths[k]);
            run(dtypes[d], "adam", widths[k]);
            run(dtypes[d], "sgd", widths[k]);
        }
}

/* Each value is the nearest of what it was, whatever it was. */
static void a_table_may_change_its_type(void **state)
{
    enum { WIDTH = 7 };
    static named n;
    wf_opt opt;

    (void)state;
    assert_int_equal(wf_opt_init(&opt, "adagrad", 0, NULL, NULL, NULL), WF_OK);
    for (size_t k = 0; k < WF_COUNT(dtypes) * WF_COUNT(dtypes); k++) {
        wf_dtype from = dtypes[k % WF_COUNT(dtypes)], to = dtypes[k / WF_COUNT(dtypes)];
        wf_slice *s = open_rows(from, WIDTH, FIRST, ROWS, &opt), *other;

        assert_int_equal(s->ops->load(s, NULL, true, NULL), WF_OK);
        begin_model(from, WIDTH, &opt);
        draw_rows(&n, (wf_rng_key){k, 1}, 1, WIDTH);
        assert_int_equal(wf_slice_apply(s, &opt, &n.part, NULL), WF_OK);
        for (uint64_t i = 0; i < n.part.rows.n; i++)
            update_model(from, WIDTH, &opt, 1, wf_row_id(&n.part.rows, i) - FIRST,
                         n.values + i * WIDTH);
        other = load(s, to, FIRST, ROWS, &opt);
        for (uint64_t r = 0; from != to && r < ROWS; r++) {
            wf_row_values_round(to, rows[r].w, WIDTH, rows[r].held, &rows[r].scale);
            wf_row_values_read(to, rows[r].held, &rows[r].scale, WIDTH, rows[r].w);
        }
        compare_pull(other, WIDTH);
        wf_slice_free(&other);
        wf_slice_free(&s);
    }
}

static void memory_is_that_of_the_type(void **state)
{
    const uint64_t bytes[] = {4 * 16, 2 * 16, 2 * 16, 16 + 4};
    wf_opt opt;

    (void)state;
    assert_int_equal(wf_opt_init(&opt, "adagrad", 0, NULL, NULL, NULL), WF_OK);
    for (size_t d = 0; d < WF_COUNT(dtypes); d++) {
        wf_slice *s = open_rows(dtypes[d], 16, FIRST, ROWS, &opt);

        assert_int_equal(s->bytes, ROWS * bytes[d]);
        assert_int_equal(wf_slice_held(s), ROWS * (bytes[d] + 16 * sizeof(float)));
        wf_slice_free(&s);
    }
}

static void types_that_rows_do_not_have_are_refused(void **state)
{
    wf_slice like = {
        .id = 3, .count = 10, .row = 10, .trainable = true, .policy = {.dtype = WF_F64}};
    wf_slice *s;
    wf_opt opt;
    wf_err err;

    (void)state;
    assert_int_equal(wf_opt_init(&opt, "adagrad", 0, NULL, NULL, NULL), WF_OK);
    assert_int_equal(wf_slice_new(&wf_slice_table, &like, &opt, &s, NULL), WF_INVALID);
    assert_int_equal(wf_slice_new(&wf_slice_hashed, &like, &opt, &s, NULL), WF_INVALID);
    like.policy.dtype = WF_BF16;
    assert_int_equal(wf_slice_new(&wf_slice_dense, &like, &opt, &s, &err), WF_INVALID);
    assert_string_equal(err.what, "slice 3 is dense, and would be bfloat16");
    like.policy.dtype = WF_I8;
    like.count = like.row = WF_INT8_ROW_MOST + 1;
    assert_int_equal(wf_slice_new(&wf_slice_table, &like, &opt, &s, &err), WF_INVALID);
    assert_string_equal(err.what,
                        "a row of slice 3 has 2049 elements, and one of int8 2048 at most");
    assert_int_equal(wf_slice_new(&wf_slice_hashed, &like, &opt, &s, NULL), WF_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_is_what_a_plain_model_says),
        cmocka_unit_test(a_table_may_change_its_type),
        cmocka_unit_test(memory_is_that_of_the_type),
        cmocka_unit_test(types_that_rows_do_not_have_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
