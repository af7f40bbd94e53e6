/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/slice.c - weights that somebody reads are never written, and each update counts one.
 */
#include "common/base/size.h"
#include "ps/dense.h"
#include "tests/kit/logged.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 1000 };

static wf_slice *open_kind(const wf_slice_ops *kind, wf_opt *opt, const char *rule, bool trainable)
{
    const char *names[] = {"learning_rate"};
    const double values[] = {1};
    const wf_slice like = {.id = 3, .count = COUNT, .trainable = trainable};
    wf_slice *s;

    assert_int_equal(wf_opt_init(opt, rule, 1, names, values, NULL), WF_OK);
    assert_int_equal(wf_slice_new(kind, &like, opt, &s, NULL), WF_OK);
    assert_int_equal(s->bytes, COUNT * sizeof(float));
    return s;
}

static wf_dense *open_slice(wf_opt *opt, const char *rule, bool trainable)
{
    return (wf_dense *)open_kind(&wf_slice_dense, opt, rule, trainable);
}

static void close_slice(wf_dense *d)
{
    wf_slice *s = &d->base;

    wf_slice_free(&s);
}

static wf_slice_part whole_part(const float *g, uint32_t step)
{
    return (wf_slice_part){
        .incarnation = 7, .step = step, .generation = 2, .values = g, .n = COUNT};
}

static void apply(wf_dense *d, const wf_opt *opt, const float *g)
{
    wf_slice_part part = whole_part(g, (uint32_t)d->base.updates + 1);

    assert_int_equal(wf_slice_apply(&d->base, opt, &part, NULL), WF_OK);
}

static const float *minus_one(void)
{
    static float g[COUNT];

    for (int i = 0; i < COUNT; i++)
        g[i] = -1;
    return g;
}

static void each_part_moves_updates_on_by_one(void **state)
{
    wf_dense *s;
    wf_opt opt;

    (void)state;
    s = open_slice(&opt, "sgd", true);
    for (uint64_t i = 1; i <= 5; i++) {
        apply(s, &opt, minus_one());
        assert_int_equal(s->base.updates, i); /* V1 */
        assert_true(wf_slice_values(&s->base)[0] == (float)i);
        assert_true(wf_slice_values(&s->base)[COUNT - 1] == (float)i);
    }
    close_slice(s);
}

static void weights_that_are_read_are_not_written(void **state)
{
    wf_buf *readers[7];
    wf_dense *s;
    wf_opt opt;

    (void)state;
    s = open_slice(&opt, "sgd", true);
    for (int i = 0; i < 7; i++) { /* more readers than there are spares */
        readers[i] = wf_buf_ref(s->weights);
        apply(s, &opt, minus_one());
    }
    for (int i = 0; i < 7; i++) { /* V2: each still sees its own instant */
        assert_true(((float *)readers[i]->data)[0] == (float)i);
        assert_true(((float *)readers[i]->data)[COUNT - 1] == (float)i);
        wf_buf_unref(&readers[i]);
    }
    assert_true(wf_slice_values(&s->base)[1] == 7);
    close_slice(s);
}

static void without_readers_weights_stay_where_they_are(void **state)
{
    wf_dense *s;
    wf_opt opt;
    const wf_buf *before;

    (void)state;
    s = open_slice(&opt, "sgd", true);
    before = s->weights;
    apply(s, &opt, minus_one());
    assert_ptr_equal(s->weights, before);
    close_slice(s);
}

/* What was lent and came back is used again: a step allocates nothing once it has begun. */
static void buffers_rotate(void **state)
{
    const wf_buf *known[3] = {0};
    wf_dense *s;
    wf_opt opt;

    (void)state;
    s = open_slice(&opt, "sgd", true);
    for (int i = 0; i < 20; i++) {
        wf_buf *reader = wf_buf_ref(s->weights);
        bool found = false;

        apply(s, &opt, minus_one());
        wf_buf_unref(&reader);
        for (int k = 0; k < 3 && !found; k++) {
            found = !known[k] || known[k] == s->weights;
            known[k] = found ? s->weights : known[k];
        }
        assert_true(found);
    }
    close_slice(s);
}

static void only_trainable_slices_have_slots(void **state)
{
    wf_dense *s;
    wf_opt opt;

    (void)state;
    s = open_slice(&opt, "adam", true);
    assert_int_equal(s->n_slots, 2);
    close_slice(s);
    s = open_slice(&opt, "adam", false);
    assert_int_equal(s->n_slots, 0);
    close_slice(s);
}

static void a_slice_too_large_for_memory_is_refused(void **state)
{
    wf_slice like = {.count = UINT64_MAX / 2}, *s;
    wf_opt opt;

    (void)state;
    assert_int_equal(wf_opt_init(&opt, "sgd", 0, NULL, NULL, NULL), WF_OK);
    assert_int_equal(wf_slice_new(&wf_slice_dense, &like, &opt, &s, NULL), WF_INVALID);
    assert_null(s);
}

/* What threads share among them gives the same bits as one: for each rule, with and without a
 * reader, over several updates. */
static void ranges_give_the_bits_of_the_whole(void **state)
{
    static const uint64_t ends[] = {1, 7, 64, 65, 500, COUNT};
    float g[COUNT];

    (void)state;
    for (int i = 0; i < COUNT; i++)
        g[i] = (float)((i * 37 % 101) - 50) / 17.0f;
    for (const wf_rule *const *rule = wf_rules; *rule; rule++) {
        wf_dense *whole, *parts;
        wf_opt opt;

        if ((*rule)->whole)
            continue;
        whole = open_slice(&opt, (*rule)->name, true);
        parts = open_slice(&opt, (*rule)->name, true);
        for (int update = 0; update < 4; update++) {
            wf_buf *reader = update % 2 ? wf_buf_ref(parts->weights) : NULL;
            wf_slice_part part = whole_part(g, 1);
            wf_slice_update u;
            uint64_t at = 0;

            apply(whole, &opt, g);
            assert_int_equal(wf_slice_apply_begin(&parts->base, &part, &u, NULL), WF_OK);
            for (int i = 0; i < 6; at = ends[i++])
                wf_dense_apply_range(&u, &opt, at, ends[i]);
            wf_dense_apply_end(&u);
            wf_buf_unref(&reader);
            assert_memory_equal(whole->weights->data, parts->weights->data, COUNT * sizeof(float));
            for (uint32_t i = 0; i < whole->n_slots; i++)
                assert_memory_equal(whole->slots[i], parts->slots[i], COUNT * sizeof(float));
        }
        close_slice(whole);
        close_slice(parts);
    }
}

/* ---- every kind ---- */

static const wf_slice_ops *const kinds[] = {&wf_slice_dense, &wf_slice_logged};

static void train(wf_slice *s, const wf_opt *opt, uint32_t from, uint32_t to)
{
    float g[COUNT];

    for (int i = 0; i < COUNT; i++)
        g[i] = (float)((i * 37 % 101) - 50) / 17.0f;
    for (uint32_t step = from; step <= to; step++) {
        wf_slice_part part = whole_part(g, step);

        assert_int_equal(s->ops->check(s, &part, NULL), WF_OK);
        assert_int_equal(wf_slice_apply(s, opt, &part, NULL), WF_OK);
    }
}

/* What a copy saved is what another slice loads. */
static wf_status read_copy(void *arg, const wf_slice *s, const char *slot, wf_dtype as,
                           uint64_t first, void *out, uint64_t n, wf_err *err)
{
    const wf_slice *copy = arg;
    wf_slice_array arrays[WF_SLICE_ARRAYS];
    uint32_t n_arrays = copy->ops->save(copy, arrays);

    (void)s;
    for (uint32_t i = 0; i < n_arrays; i++)
        if (arrays[i].slot == slot || (slot && arrays[i].slot && !strcmp(slot, arrays[i].slot))) {
            assert_true(as == WF_F32 && first == 0 && arrays[i].bytes == n * sizeof(float));
            memcpy(out, arrays[i].data, arrays[i].bytes);
            return WF_OK;
        }
    return wf_fail(err, WF_NOTFOUND, NULL, "no slot %s", slot);
}

static wf_status read_all_copy(void *arg, const wf_slice *s, const char *slot, void **out,
                               uint64_t *bytes, wf_err *err)
{
    const wf_slice *copy = arg;
    wf_slice_array arrays[WF_SLICE_ARRAYS];
    uint32_t n_arrays = copy->ops->save(copy, arrays);

    (void)s;
    for (uint32_t i = 1; i < n_arrays; i++)
        if (strcmp(slot, arrays[i].slot) == 0) {
            *bytes = arrays[i].bytes;
            *out = malloc(arrays[i].bytes + 1);
            memcpy(*out, arrays[i].data, arrays[i].bytes);
            return WF_OK;
        }
    return wf_fail(err, WF_NOTFOUND, NULL, "no array %s", slot);
}

/* For each rule: a copy does not change while its slice goes on, and another slice that loads it
 * goes on with the same bits. */
static void a_copy_is_of_one_instant_and_can_be_loaded(void **state)
{
    (void)state;
    for (size_t k = 0; k < WF_COUNT(kinds); k++)
        for (const wf_rule *const *rule = wf_rules; *rule; rule++) {
            wf_slice_source source = {.read = read_copy, .read_all = read_all_copy};
            wf_slice *s, *copy, *other;
            uint64_t digest;
            wf_opt opt;

            s = open_kind(kinds[k], &opt, (*rule)->name, true);
            other = open_kind(kinds[k], &opt, (*rule)->name, true);
            train(s, &opt, 1, 3);
            digest = s->ops->digest(s);
            assert_int_not_equal(digest, other->ops->digest(other));
            assert_int_equal(wf_slice_fork(s, &copy, NULL), WF_OK);
            train(s, &opt, 4, 6);
            assert_int_equal(copy->ops->digest(copy), digest);
            assert_int_not_equal(s->ops->digest(s), digest);
            source.arg = copy;
            other->updates = copy->updates;
            assert_int_equal(other->ops->load(other, &source, false, NULL), WF_OK);
            assert_int_equal(other->ops->digest(other), digest);
            train(other, &opt, 4, 6);
            assert_int_equal(other->ops->digest(other), s->ops->digest(s));
            wf_slice_free(&copy);
            wf_slice_free(&other);
            wf_slice_free(&s);
        }
}

/* Rows 1 and 4 of 100 rows of 10. */
static wf_slice_part part_of_rows(uint8_t ids[16], const float *g)
{
    wf_put_u64(ids, 1);
    wf_put_u64(ids + 8, 4);
    return (wf_slice_part){
        .incarnation = 7, .step = 1, .values = g, .n = 20, .rows = {.n = 2, .ids = ids}};
}

static void a_dense_slice_takes_no_rows(void **state)
{
    uint8_t ids[16];
    wf_slice_part part = part_of_rows(ids, minus_one());
    wf_slice *s;
    wf_err err;
    wf_opt opt;

    (void)state;
    s = open_kind(&wf_slice_dense, &opt, "sgd", true);
    assert_int_equal(s->ops->check(s, &part, &err), WF_PROTO);
    assert_string_equal(err.what, "slice 3 is dense, and the part names 2 rows");
    wf_slice_free(&s);
}

static void a_slice_that_takes_rows_changes_those_alone(void **state)
{
    uint8_t ids[16];
    wf_slice_part part = part_of_rows(ids, minus_one());
    const wf_logged_line *lines;
    wf_slice *s;
    uint64_t n;
    wf_opt opt;

    (void)state;
    s = open_kind(&wf_slice_logged, &opt, "sgd", true);
    assert_int_equal(s->ops->check(s, &part, NULL), WF_OK);
    assert_int_equal(wf_slice_apply(s, &opt, &part, NULL), WF_OK);
    for (int i = 0; i < COUNT; i++)
        assert_true(wf_slice_values(s)[i] == (float)(i / 10 == 1 || i / 10 == 4));
    lines = wf_logged_lines(s, &n);
    assert_int_equal(n, 1);
    assert_int_equal(lines[0].rows, 2);
    wf_put_u64(ids, 100); /* behind the last one */
    assert_int_equal(s->ops->check(s, &part, NULL), WF_SHAPE);
    wf_slice_free(&s);
}

static void a_kind_is_found_by_its_name(void **state)
{
    (void)state;
    assert_ptr_equal(wf_slice_kind_find(NULL, ""), &wf_slice_dense);
    assert_ptr_equal(wf_slice_kind_find(NULL, "dense"), &wf_slice_dense);
    assert_null(wf_slice_kind_find(NULL, "logged"));
    assert_ptr_equal(wf_slice_kind_find(wf_logged_kinds, "logged"), &wf_slice_logged);
    assert_ptr_equal(wf_slice_kind_find(wf_logged_kinds, ""), &wf_slice_dense);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_part_moves_updates_on_by_one),
        cmocka_unit_test(weights_that_are_read_are_not_written),
        cmocka_unit_test(without_readers_weights_stay_where_they_are),
        cmocka_unit_test(buffers_rotate),
        cmocka_unit_test(a_copy_is_of_one_instant_and_can_be_loaded),
        cmocka_unit_test(a_dense_slice_takes_no_rows),
        cmocka_unit_test(a_slice_that_takes_rows_changes_those_alone),
        cmocka_unit_test(a_kind_is_found_by_its_name),
        cmocka_unit_test(ranges_give_the_bits_of_the_whole),
        cmocka_unit_test(only_trainable_slices_have_slots),
        cmocka_unit_test(a_slice_too_large_for_memory_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
