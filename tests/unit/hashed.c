/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/hashed.c - a bucket of an unbounded table against a plain model of its ids: what its
 * rows hold, which ids are admitted, and states that are saved and loaded. */
#include "common/kernels/pool.h"
#include "tests/unit/hashed_model.h"

static void a_table_is_what_a_plain_model_says(void **state)
{
    (void)state;
    run("adagrad", (wf_row_policy){0}, 1);
    run("sgd", (wf_row_policy){.admit_after = 1}, 2);
    run("adam", (wf_row_policy){.admit_after = 3}, 3);
}

static void rows_of_fewer_bits_are_what_a_plain_model_says(void **state)
{
    const wf_dtype dtypes[] = {WF_BF16, WF_F16, WF_I8};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(dtypes); i++) {
        run("adagrad", (wf_row_policy){.dtype = dtypes[i], .rounding = 5}, 9);
        run("adam",
            (wf_row_policy){.dtype = dtypes[i], .rounding = 6, .admit_after = 2, .evict_after = 30},
            10);
    }
}

/* A state of one type, loaded where rows have another: the nearest of what they were. */
static void a_table_may_change_its_type(void **state)
{
    const wf_dtype dtypes[] = {WF_F32, WF_BF16, WF_F16, WF_I8};

    (void)state;
    for (size_t k = 0; k < WF_COUNT(dtypes) * WF_COUNT(dtypes); k++) {
        model *m = calloc(1, sizeof *m), *other = calloc(1, sizeof *other);
        wf_slice_source from = {.dtype = dtype_of_copy, .read_all = read_all};
        wf_slice *s, *copy = NULL, *fresh;
        named n;

        m->policy = (wf_row_policy){.first = {WF_UNIFORM, 0, 0.05},
                                    .seed = SEED,
                                    .stream = STREAM,
                                    .dtype = dtypes[k % WF_COUNT(dtypes)]};
        assert_int_equal(wf_opt_init(&m->opt, "adagrad", 0, NULL, NULL, NULL), WF_OK);
        s = open_slice(m);
        for (uint64_t round = 0; round < 30; round++) {
            draw(&n, (wf_rng_key){k, 3}, round);
            push(s, m, &n);
        }
        *other = *m;
        other->policy.dtype = dtypes[k / WF_COUNT(dtypes)];
        for (int i = 0; i < IDS && other->policy.dtype != m->policy.dtype; i++) {
            model_row *r = &other->rows[i];

            wf_row_values_round(other->policy.dtype, r->w, WIDTH, r->held, &r->scale);
            wf_row_values_read(other->policy.dtype, r->held, &r->scale, WIDTH, r->w);
        }
        fresh = open_slice(other);
        assert_int_equal(wf_slice_fork(s, &copy, NULL), WF_OK);
        from.arg = copy;
        fresh->updates = s->updates;
        assert_int_equal(fresh->ops->load(fresh, &from, false, NULL), WF_OK);
        compare_pull(fresh, other);
        wf_slice_free(&copy);
        wf_slice_free(&fresh);
        wf_slice_free(&s);
        free(other);
        free(m);
    }
}

/* ---- threads ---- */

typedef struct turn {
    const wf_slice_update *update;
    const wf_opt *opt;
} turn;

static void apply_some(void *arg, int64_t begin, int64_t end)
{
    const turn *t = arg;

    t->update->slice->ops->apply_range(t->update, t->opt, (uint64_t)begin, (uint64_t)end);
}

/* New rows among them; the model's are those of one thread. */
static void threads_update_rows_of_their_own(void **state)
{
    const wf_rng_key key = {9, 9};
    model *m = calloc(1, sizeof *m);
    wf_pool *pool = NULL;
    wf_slice *s;
    named n;

    (void)state;
    m->policy = (wf_row_policy){.first = {WF_UNIFORM, 0, 0.05},
                                .seed = SEED,
                                .stream = STREAM,
                                .dtype = WF_BF16,
                                .admit_after = 2,
                                .evict_after = 30};
    assert_int_equal(wf_opt_init(&m->opt, "adam", 0, NULL, NULL, NULL), WF_OK);
    assert_int_equal(wf_pool_new(3, &pool, NULL), WF_OK);
    s = open_slice(m);
    for (uint64_t round = 0; round < 300; round++) {
        wf_slice_update u;
        turn t = {&u, &m->opt};

        draw(&n, key, round);
        assert_int_equal(wf_slice_apply_begin(s, &n.part, &u, NULL), WF_OK);
        wf_pool_for(pool, (int64_t)u.units, 1, apply_some, &t);
        s->ops->apply_end(&u);
        push_to_model(m, &n);
        compare_pull(s, m);
    }
    wf_slice_free(&s);
    wf_pool_free(&pool);
    free(m);
}

/* Of two rows that come in one order or the other. */
static uint64_t digest_of_order(uint32_t evict_after, bool turned)
{
    wf_slice *s;
    model *m = begin((wf_row_policy){.evict_after = evict_after}, &s);
    named n = {0};
    uint64_t digest;

    for (int i = 0; i < 2; i++) {
        n.at[0] = i != turned;
        name_rows(&n, 1);
        push(s, m, &n);
    }
    digest = s->ops->digest(s);
    wf_slice_free(&s);
    free(m);
    return digest;
}

static void a_digest_goes_by_the_order_of_use_alone(void **state)
{
    (void)state;
    assert_true(digest_of_order(0, false) == digest_of_order(0, true));
    assert_true(digest_of_order(9, false) != digest_of_order(9, true));
}

/* ---- a filter of ids ---- */

/* Of keys that come once hardly any is counted twice; no count is too low until all are halved. */
static void a_filter_counts_as_it_promises(void **state)
{
    enum { BYTES = 1 << 14, KEYS = 200000 };
    uint64_t early = 0;
    wf_id_filter f;
    wf_err err;

    (void)state;
    assert_int_equal(wf_id_filter_init(&f, BYTES + 100, NULL), WF_OK);
    assert_int_equal(f.size, BYTES);
    for (uint64_t i = 0; i < KEYS; i++)
        early += wf_id_filter_add(&f, wf_rng_fold(1, i)) > 1;
    assert_true((double)early < KEYS * 0.024);
    for (uint64_t i = 0; i < KEYS; i++)
        for (uint32_t k = 1; k <= 3; k++) {
            bool halves = f.named >= BYTES / 8;
            uint32_t count = wf_id_filter_add(&f, wf_rng_fold(2, i));

            if (halves)
                break;
            assert_true(count >= k);
        }
    for (int i = 0; i < 300; i++)
        assert_true(wf_id_filter_add(&f, 7) <= WF_ID_FILTER_MOST);
    wf_id_filter_close(&f);
    assert_int_equal(wf_id_filter_init(&f, WF_ID_FILTER_LEAST_BYTES - 1, &err), WF_INVALID);
}

static uint64_t count_rows(const wf_slice *s)
{
    return ((const wf_hashed *)s)->rows.records.n;
}

/* Ids get rows as they do where each is counted, as long as the filter is large for them; and a
 * slice that was saved and loaded goes on as one that was not. */
static void a_filter_admits_and_is_saved(void **state)
{
    model *m = calloc(1, sizeof *m);
    wf_slice *s, *unbroken;
    named n;

    (void)state;
    m->policy = (wf_row_policy){.seed = SEED,
                                .stream = STREAM,
                                .first = {WF_UNIFORM, 0, 0.05},
                                .admit_after = 3,
                                .filter_bytes = 1 << 16};
    assert_int_equal(wf_opt_init(&m->opt, "sgd", 0, NULL, NULL, NULL), WF_OK);
    s = open_slice(m);
    unbroken = open_slice(m);
    for (uint64_t round = 0; round < 300; round++) {
        draw(&n, (wf_rng_key){3, 3}, round);
        push(s, m, &n);
        assert_int_equal(wf_slice_apply(unbroken, &m->opt, &n.part, NULL), WF_OK);
        compare_pull(s, m);
        assert_int_equal(count_rows(s), count_live(m, true));
        if (round % 20 == 7)
            save_and_load(&s, m);
    }
    assert_true(s->ops->digest(s) == unbroken->ops->digest(unbroken));
    assert_true(wf_slice_held(s) >= m->policy.filter_bytes);
    wf_slice_free(&s);
    wf_slice_free(&unbroken);
    free(m);
}

static void keys_that_cannot_be_are_refused(void **state)
{
    const uint64_t base = (uint64_t)BUCKET << (64 - WF_ROW_BUCKET_BITS);
    const struct {
        uint64_t keys[2];
        wf_status rc;
    } bad[] = {{{base - 1, base}, WF_SHAPE},
               {{base, base + (UINT64_C(1) << (64 - WF_ROW_BUCKET_BITS))}, WF_SHAPE},
               {{base, UINT64_MAX}, WF_SHAPE},
               {{base + 1, base + 1}, WF_PROTO},
               {{base + 2, base + 1}, WF_PROTO}};
    wf_slice *s;
    model *m = begin((wf_row_policy){0}, &s);
    named n = {0};

    (void)state;
    name_rows(&n, 2);
    for (size_t i = 0; i < WF_COUNT(bad); i++) {
        for (size_t k = 0; k < 2; k++)
            wf_put_u64(n.keys + k * sizeof(uint64_t), bad[i].keys[k]);
        assert_int_equal(s->ops->check(s, &n.part, NULL), bad[i].rc);
        assert_int_equal(s->ops->check_rows(s, &n.part.rows, NULL), bad[i].rc);
    }
    n.at[1] = 1;
    name_rows(&n, 2);
    assert_int_equal(s->ops->check(s, &n.part, NULL), WF_OK);
    n.part.n--;
    assert_int_equal(s->ops->check(s, &n.part, NULL), WF_SHAPE);
    n.part.n = WIDTH; /* half a row each */
    assert_int_equal(s->ops->check(s, &n.part, NULL), WF_SHAPE);
    n.part.rows.n = 0;
    assert_int_equal(s->ops->check(s, &n.part, NULL), WF_PROTO);
    wf_slice_free(&s);
    free(m);
}

/* ---- states that cannot be ---- */

typedef struct arrays {
    int64_t ids[3], updated[3];
    float scales[3];
    uint64_t n, n_updated, n_values, n_scales;
} arrays;

static wf_status read_bad(void *arg, const wf_slice *s, const char *slot, void **out,
                          uint64_t *bytes, wf_err *err)
{
    const arrays *a = arg;
    float zeros[3 * WIDTH] = {0};
    const void *from = zeros;

    (void)err;
    *bytes =
        a->n_values * WIDTH * (slot ? sizeof(float) : wf_row_values_bytes(wf_slice_dtype(s), 1));
    if (slot && strcmp(slot, "scale") == 0) {
        from = a->scales;
        *bytes = a->n_scales * sizeof(float);
    } else if (slot && strcmp(slot, "ids") == 0) {
        from = a->ids;
        *bytes = a->n * sizeof(int64_t);
    } else if (slot && strcmp(slot, "updated") == 0) {
        from = a->updated;
        *bytes = a->n_updated * sizeof(int64_t);
    }
    *out = malloc(*bytes + 1);
    memcpy(*out, from, *bytes);
    return WF_OK;
}

static wf_dtype dtype_of_bad(void *arg, const wf_slice *s)
{
    (void)arg;
    return wf_slice_dtype(s);
}

static void states_that_cannot_be_are_refused(void **state)
{
    const arrays good = {{ids[0], ids[1], ids[2]}, {1, 1, 4}, {1, 0, 2}, 3, 3, 3, 3};
    arrays bad[] = {good, good, good, good, good, good, good, good, good, good};

    (void)state;
    bad[1].ids[2] = ids[0];
    bad[2].ids[1] = ids[1] + 1 == ids[2] ? ids[1] - 1 : ids[1] + 1; /* of another bucket */
    bad[3].updated[2] = 5;                                          /* there were 4 */
    bad[4].updated[1] = 0;
    bad[5].n_values = 2;
    bad[6].n_updated = 2;
    bad[7].n_scales = 2;
    bad[8].scales[1] = -1;
    bad[9].scales[2] = INFINITY;
    for (size_t i = 0; i < WF_COUNT(bad); i++) {
        wf_slice *s;
        model *m = begin((wf_row_policy){.evict_after = 100, .dtype = WF_I8}, &s);
        wf_slice_source from = {.arg = &bad[i], .dtype = dtype_of_bad, .read_all = read_bad};

        s->updates = 4;
        assert_int_equal(s->ops->load(s, &from, false, NULL), i == 0 ? WF_OK : WF_CORRUPT);
        wf_slice_free(&s);
        free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_is_what_a_plain_model_says),
        cmocka_unit_test(rows_of_fewer_bits_are_what_a_plain_model_says),
        cmocka_unit_test(a_table_may_change_its_type),
        cmocka_unit_test(threads_update_rows_of_their_own),
        cmocka_unit_test(a_digest_goes_by_the_order_of_use_alone),
        cmocka_unit_test(a_filter_counts_as_it_promises),
        cmocka_unit_test(a_filter_admits_and_is_saved),
        cmocka_unit_test(keys_that_cannot_be_are_refused),
        cmocka_unit_test(states_that_cannot_be_are_refused),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
