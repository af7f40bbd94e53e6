/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/hashed.c - a bucket of an unbounded table against a plain model of its ids: pushes,
 * pulls, copies, and states that are saved and loaded, in any order; which ids have rows, and what
 * the rows hold. */
#include "ps/hashed.h"
#include "common/base/rng.h"
#include "common/base/row_key.h"
#include "common/base/size.h"
#include "common/kernels/pool.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BUCKET = 41, WIDTH = 6, IDS = 160, MOST = 24, ROUNDS = 1500, SEED = 77, STREAM = 88 };

/* Updates begin short of where 32 bits of them, and an era of ps/row_order.h, end. */
static const uint64_t FIRST = UINT32_MAX - ROUNDS / 2;

/* ---- ids of the bucket: from around 0, in rising order of their keys ---- */

static int64_t ids[IDS];

static int by_key(const void *a, const void *b)
{
    uint64_t x = wf_row_key(*(const int64_t *)a), y = wf_row_key(*(const int64_t *)b);

    return x < y ? -1 : x > y;
}

static void choose_ids(void)
{
    int n = 0;

    for (int64_t i = 0; n < IDS; i++) {
        int64_t id = i % 2 ? i : -i;

        if (wf_row_bucket(wf_row_key(id)) == BUCKET)
            ids[n++] = id;
    }
    qsort(ids, IDS, sizeof ids[0], by_key);
}

/* ---- the model ---- */

typedef struct model_row {
    bool stored;
    uint32_t pushes; /* that have named an id without a row */
    uint64_t used;   /* the update that named it last */
    uint64_t uses; /* as it was then, 31 at most; halved for each era of 1024 updates that ended */
    float w[WIDTH], slots[WF_MAX_SLOTS][WIDTH];
    uint8_t held[WIDTH * sizeof(float)]; /* w in the type of the table; w is what it says */
    float scale;
} model_row;

typedef struct model {
    wf_row_policy policy;
    wf_opt opt;
    uint64_t updates;
    model_row rows[IDS];
} model;

static wf_dtype dtype_of_model(const model *m)
{
    return m->policy.dtype ? m->policy.dtype : WF_F32;
}

/* Keras's "uniform" from the seed, the variable and the id. */
static void first_floats(int64_t id, float out[WIDTH])
{
    wf_rng_key key = {SEED, wf_rng_fold(STREAM, (uint64_t)id)};

    for (uint64_t i = 0; i < WIDTH; i++)
        out[i] = (float)(0.05 * (2.0 * (double)wf_rng_f32(key, i) - 1.0));
}

/* The same to the nearest of the table's type. */
static void first_values(const model *m, int64_t id, model_row *r)
{
    first_floats(id, r->w);
    wf_row_values_round(dtype_of_model(m), r->w, WIDTH, r->held, &r->scale);
    wf_row_values_read(dtype_of_model(m), r->held, &r->scale, WIDTH, r->w);
}

static bool is_live(const model *m, int i, bool stored)
{
    return stored ? m->rows[i].stored : m->rows[i].pushes > 0;
}

static uint64_t count_live(const model *m, bool stored)
{
    uint64_t n = 0;

    for (int i = 0; i < IDS; i++)
        n += is_live(m, i, stored);
    return n;
}

static uint64_t eras_since(const model *m, int i)
{
    return m->updates / 1024 - m->rows[i].used / 1024;
}

static uint64_t uses_now(const model *m, int i)
{
    uint64_t halved = eras_since(m, i);

    return halved < 64 ? m->rows[i].uses >> halved : 0;
}

/* The one that was used longest ago, and of several the one with the lowest key. */
static int oldest_of(const model *m, bool stored)
{
    int oldest = -1;

    for (int i = 0; i < IDS; i++)
        if (is_live(m, i, stored) && (oldest < 0 || m->rows[i].used < m->rows[oldest].used))
            oldest = i;
    return oldest;
}

static int oldest_beyond(const model *m, int before)
{
    int next = -1;

    for (int i = 0; i < IDS; i++)
        if (is_live(m, i, true) && i != before &&
            (m->rows[i].used > m->rows[before].used ||
             (m->rows[i].used == m->rows[before].used && i > before)) &&
            (next < 0 || m->rows[i].used < m->rows[next].used))
            next = i;
    return next;
}

/* Of the 16 that were used longest ago, but for those of this update: the first that was used the
 * fewest times. */
static int least_used_of(const model *m)
{
    int least = oldest_of(m, true);

    for (int at = least, k = 1; k < 16; k++) {
        at = oldest_beyond(m, at);
        if (at < 0 || m->rows[at].used == m->updates)
            break;
        if (uses_now(m, at) < uses_now(m, least))
            least = at;
    }
    return least;
}

static void forget(model_row *r)
{
    r->stored = false;
    r->pushes = 0;
}

static void evict(model *m, bool stored)
{
    const wf_row_policy *p = &m->policy;

    for (int i = 0; i < IDS; i++)
        if (is_live(m, i, stored) && p->evict_after &&
            m->updates - m->rows[i].used >= p->evict_after)
            forget(&m->rows[i]);
    while (p->max_rows && !p->fails_full && count_live(m, stored) > p->max_rows)
        forget(&m->rows[stored && p->by_frequency ? least_used_of(m) : oldest_of(m, stored)]);
}

static void update(model *m, int i, const float gradient[])
{
    model_row *r = &m->rows[i];
    float *slots[WF_MAX_SLOTS];

    r->uses = r->stored ? WF_MIN((r->uses >> eras_since(m, i) % 8) + 1, (uint64_t)31) : 1;
    r->used = m->updates;
    if (!r->stored && ++r->pushes < m->policy.admit_after)
        return;
    if (!r->stored) {
        first_values(m, ids[i], r);
        for (uint32_t k = 0; k < wf_opt_n_slots(&m->opt); k++)
            for (int e = 0; e < WIDTH; e++)
                r->slots[k][e] = wf_opt_slot_initial(&m->opt, k);
        r->stored = true;
        r->pushes = 0;
    }
    for (int k = 0; k < WF_MAX_SLOTS; k++)
        slots[k] = r->slots[k];
    wf_opt_apply(&m->opt, m->updates, WIDTH, r->w, gradient, slots);
    wf_row_values_draw(
        dtype_of_model(m), r->w, WIDTH,
        wf_draw_of(wf_rng_fold(wf_rng_fold(m->policy.rounding, m->updates), wf_row_key(ids[i]))), 0,
        r->held, &r->scale);
    wf_row_values_read(dtype_of_model(m), r->held, &r->scale, WIDTH, r->w);
}

/* ---- parts ---- */

typedef struct named {
    int at[IDS]; /* [part.rows.n]: places in ids */
    uint8_t keys[IDS * sizeof(uint64_t)];
    float values[IDS * WIDTH];
    wf_slice_part part;
} named;

static void name_rows(named *n, uint64_t rows)
{
    for (uint64_t i = 0; i < rows; i++)
        wf_put_u64(n->keys + i * sizeof(uint64_t), wf_row_key(ids[n->at[i]]));
    n->part = (wf_slice_part){.incarnation = 7,
                              .step = 1,
                              .values = n->values,
                              .n = rows * WIDTH,
                              .rows = {.n = rows, .ids = n->keys}};
}

/* Some ids in the order of their keys; those of low numbers more often, and of late rounds others
 * than of early ones. */
static void draw(named *n, wf_rng_key key, uint64_t round)
{
    uint64_t rows = 0;

    for (int i = 0; i < IDS && rows < MOST; i++)
        if (wf_rng_below(key, round * 1000 + (uint64_t)i, 4 * IDS) <
            ((uint64_t)i + round / 8) % IDS)
            n->at[rows++] = i;
    if (rows == 0)
        n->at[rows++] = (int)(round % IDS);
    for (uint64_t i = 0; i < rows * WIDTH; i++)
        n->values[i] = (float)wf_rng_f64(key, round * 1000 + IDS + i) - 0.5F;
    name_rows(n, rows);
}

static void name_all(named *n)
{
    for (int i = 0; i < IDS; i++)
        n->at[i] = i;
    name_rows(n, IDS);
}

/* ---- comparisons ---- */

static void compare_pull(const wf_slice *s, const model *m)
{
    float out[IDS * WIDTH];
    model_row first;
    named all;

    name_all(&all);
    assert_int_equal(s->ops->check_rows(s, &all.part.rows, NULL), WF_OK);
    s->ops->answer_rows(s, &all.part.rows, out);
    for (int i = 0; i < IDS; i++) {
        if (!m->rows[i].stored)
            first_values(m, ids[i], &first);
        assert_memory_equal(out + (size_t)i * WIDTH, m->rows[i].stored ? m->rows[i].w : first.w,
                            sizeof first.w);
    }
}

static const wf_slice_array *find_array(const wf_slice_array arrays[], uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(arrays[i].slot ? arrays[i].slot : "", name) == 0)
            return &arrays[i];
    return NULL;
}

static int place_of_id(int64_t id)
{
    for (int i = 0; i < IDS; i++)
        if (ids[i] == id)
            return i;
    fail();
    return -1;
}

/* A copy against the model of its time. */
static void compare_copy(const wf_slice *copy, const model *m)
{
    wf_slice_array arrays[WF_SLICE_ARRAYS];
    uint32_t n = copy->ops->save(copy, arrays);
    const wf_slice_array *of_ids = find_array(arrays, n, "ids");
    const wf_slice_array *updated = find_array(arrays, n, "updated");
    const wf_slice_array *scales = find_array(arrays, n, "scale");
    size_t each = wf_row_values_bytes(dtype_of_model(m), WIDTH);
    uint64_t rows = of_ids->bytes / sizeof(int64_t);

    assert_int_equal(rows, count_live(m, true));
    assert_int_equal(arrays[0].dtype, dtype_of_model(m));
    assert_int_equal(arrays[0].bytes, rows * each);
    assert_int_equal(scales != NULL, dtype_of_model(m) == WF_I8);
    assert_int_equal(updated != NULL, wf_row_policy_evicts(&m->policy));
    for (uint64_t i = 0; i < rows; i++) {
        const model_row *r = &m->rows[place_of_id(((const int64_t *)of_ids->data)[i])];

        assert_true(r->stored);
        assert_memory_equal((const uint8_t *)arrays[0].data + i * each, r->held, each);
        if (scales)
            assert_true(((const float *)scales->data)[i] == r->scale);
        for (uint32_t k = 0; k < wf_opt_n_slots(&m->opt); k++)
            assert_memory_equal((const float *)arrays[1 + k].data + i * WIDTH, r->slots[k],
                                sizeof r->w);
        if (updated)
            assert_int_equal(((const int64_t *)updated->data)[i], r->used);
    }
    if (m->policy.admit_after > 1)
        assert_int_equal(find_array(arrays, n, "waiting/ids")->bytes / sizeof(int64_t),
                         count_live(m, false));
}

/* ---- a state that is saved and loaded ---- */

static wf_status read_all(void *arg, const wf_slice *s, const char *slot, void **out,
                          uint64_t *bytes, wf_err *err)
{
    const wf_slice *copy = arg;
    wf_slice_array arrays[WF_SLICE_ARRAYS];
    const wf_slice_array *a = find_array(arrays, copy->ops->save(copy, arrays), slot ? slot : "");

    if (!a)
        return wf_fail(err, WF_NOTFOUND, NULL, "slice %u has no %s", s->id, slot);
    *out = malloc(a->bytes + 1);
    assert_non_null(*out);
    memcpy(*out, a->data, a->bytes);
    *bytes = a->bytes;
    return WF_OK;
}

static wf_dtype dtype_of_copy(void *arg, const wf_slice *s)
{
    (void)s;
    return wf_slice_dtype(arg);
}

static wf_slice *open_slice(const model *m)
{
    const wf_slice like = {.id = 3,
                           .offset = BUCKET * WIDTH,
                           .count = WIDTH,
                           .row = WIDTH,
                           .trainable = true,
                           .policy = m->policy};
    wf_slice *s = NULL;

    assert_int_equal(wf_slice_new(&wf_slice_hashed, &like, &m->opt, &s, NULL), WF_OK);
    return s;
}

static void save_and_load(wf_slice **s, const model *m)
{
    wf_slice *copy = NULL, *fresh = open_slice(m);
    wf_slice_source from = {.dtype = dtype_of_copy, .read_all = read_all};

    assert_int_equal(wf_slice_fork(*s, &copy, NULL), WF_OK);
    from.arg = copy;
    fresh->updates = (*s)->updates;
    assert_int_equal(fresh->ops->load(fresh, &from, false, NULL), WF_OK);
    assert_true(fresh->ops->digest(fresh) == (*s)->ops->digest(*s));
    assert_int_equal(fresh->bytes, (*s)->bytes);
    wf_slice_free(&copy);
    wf_slice_free(s);
    *s = fresh;
}

/* ---- */

static void push_to_model(model *m, const named *n)
{
    m->updates++;
    for (uint64_t i = 0; i < n->part.rows.n; i++)
        update(m, n->at[i], n->values + i * WIDTH);
    evict(m, true);
    evict(m, false);
}

static void push(wf_slice *s, model *m, const named *n)
{
    assert_int_equal(s->ops->check(s, &n->part, NULL), WF_OK);
    assert_int_equal(wf_slice_apply(s, &m->opt, &n->part, NULL), WF_OK);
    push_to_model(m, n);
}

static void run(const char *rule, wf_row_policy policy, uint64_t seed)
{
    const char *names[] = {"learning_rate"};
    const double values[] = {0.125};
    const wf_rng_key key = {seed, wf_rng_fold_str(0, rule)};
    model *m = calloc(1, sizeof *m), *then = calloc(1, sizeof *then);
    wf_slice *s, *copy = NULL;
    named n;

    policy.first = (wf_distribution){WF_UNIFORM, 0, 0.05};
    policy.seed = SEED;
    policy.stream = STREAM;
    m->policy = policy;
    assert_int_equal(wf_opt_init(&m->opt, rule, 1, names, values, NULL), WF_OK);
    s = open_slice(m);
    s->updates = m->updates = FIRST;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        double p = wf_rng_f64(key, UINT64_MAX - round);

        draw(&n, key, round);
        push(s, m, &n);
        compare_pull(s, m);
        assert_int_equal(s->bytes,
                         count_live(m, true) * wf_row_values_room(dtype_of_model(m), WIDTH));
        if (p < 0.05)
            save_and_load(&s, m);
        if (copy)
            compare_copy(copy, then);
        if (p > 0.9) { /* of this instant, whatever comes */
            wf_slice_free(&copy);
            assert_int_equal(wf_slice_fork(s, &copy, NULL), WF_OK);
            *then = *m;
        }
    }
    assert_int_equal(s->updates, FIRST + ROUNDS);
    wf_slice_free(&copy);
    wf_slice_free(&s);
    free(then);
    free(m);
}

static void a_table_is_what_a_plain_model_says(void **state)
{
    (void)state;
    run("adagrad", (wf_row_policy){0}, 1);
    run("sgd", (wf_row_policy){.admit_after = 1}, 2);
    run("adam", (wf_row_policy){.admit_after = 3}, 3);
}

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

static model *begin(wf_row_policy policy, wf_slice **s)
{
    model *m = calloc(1, sizeof *m);

    m->policy = policy;
    assert_int_equal(wf_opt_init(&m->opt, "adagrad", 0, NULL, NULL, NULL), WF_OK);
    *s = open_slice(m);
    return m;
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

static void a_push_beyond_the_limit_changes_nothing(void **state)
{
    wf_slice *s;
    model *m = begin((wf_row_policy){.max_rows = 10, .fails_full = true}, &s);
    named n = {0};
    uint64_t digest;
    wf_err err;

    (void)state;
    for (int i = 0; i < 8; i++)
        n.at[i] = i;
    name_rows(&n, 8);
    assert_int_equal(s->ops->check(s, &n.part, NULL), WF_OK);
    assert_int_equal(wf_slice_apply(s, &m->opt, &n.part, NULL), WF_OK);
    digest = s->ops->digest(s);
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
    for (int i = 0; i < 8; i++)
        n.at[i] = i;
    name_rows(&n, 8);
    assert_int_equal(s->ops->check(s, &n.part, NULL), WF_OK);
    assert_int_equal(wf_slice_apply(s, &m->opt, &n.part, NULL), WF_OK);
    digest = s->ops->digest(s);
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

static int set_up(void **state)
{
    (void)state;
    choose_ids();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_is_what_a_plain_model_says),
        cmocka_unit_test(rows_leave_as_a_plain_model_says),
        cmocka_unit_test(a_row_that_was_used_more_often_stays),
        cmocka_unit_test(rows_of_fewer_bits_are_what_a_plain_model_says),
        cmocka_unit_test(a_table_may_change_its_type),
        cmocka_unit_test(threads_update_rows_of_their_own),
        cmocka_unit_test(a_digest_goes_by_the_order_of_use_alone),
        cmocka_unit_test(a_push_beyond_the_limit_changes_nothing),
        cmocka_unit_test(a_limit_in_bytes_is_kept),
        cmocka_unit_test(a_push_beyond_a_limit_in_bytes_is_refused),
        cmocka_unit_test(a_filter_counts_as_it_promises),
        cmocka_unit_test(a_filter_admits_and_is_saved),
        cmocka_unit_test(a_limit_below_one_row_is_refused),
        cmocka_unit_test(keys_that_cannot_be_are_refused),
        cmocka_unit_test(states_that_cannot_be_are_refused),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
