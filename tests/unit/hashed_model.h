/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/hashed_model.h - a bucket of an unbounded table beside a plain model of its ids:
 * pushes, pulls, copies, and states that are saved and loaded, in any order. */
#ifndef WF_TESTS_UNIT_HASHED_MODEL_H
#define WF_TESTS_UNIT_HASHED_MODEL_H

#include "common/base/rng.h"
#include "common/base/row_key.h"
#include "common/base/size.h"
#include "ps/hashed.h"

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

static inline int by_key(const void *a, const void *b)
{
    uint64_t x = wf_row_key(*(const int64_t *)a), y = wf_row_key(*(const int64_t *)b);

    return x < y ? -1 : x > y;
}

static inline void choose_ids(void)
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

static inline wf_dtype dtype_of_model(const model *m)
{
    return m->policy.dtype ? m->policy.dtype : WF_F32;
}

/* Keras's "uniform" from the seed, the variable and the id. */
static inline void first_floats(int64_t id, float out[WIDTH])
{
    wf_rng_key key = {SEED, wf_rng_fold(STREAM, (uint64_t)id)};

    for (uint64_t i = 0; i < WIDTH; i++)
        out[i] = (float)(0.05 * (2.0 * (double)wf_rng_f32(key, i) - 1.0));
}

/* The same to the nearest of the table's type. */
static inline void first_values(const model *m, int64_t id, model_row *r)
{
    first_floats(id, r->w);
    wf_row_values_round(dtype_of_model(m), r->w, WIDTH, r->held, &r->scale);
    wf_row_values_read(dtype_of_model(m), r->held, &r->scale, WIDTH, r->w);
}

static inline bool is_live(const model *m, int i, bool stored)
{
    return stored ? m->rows[i].stored : m->rows[i].pushes > 0;
}

static inline uint64_t count_live(const model *m, bool stored)
{
    uint64_t n = 0;

    for (int i = 0; i < IDS; i++)
        n += is_live(m, i, stored);
    return n;
}

static inline uint64_t eras_since(const model *m, int i)
{
    return m->updates / 1024 - m->rows[i].used / 1024;
}

static inline uint64_t uses_now(const model *m, int i)
{
    uint64_t halved = eras_since(m, i);

    return halved < 64 ? m->rows[i].uses >> halved : 0;
}

/* The one that was used longest ago, and of several the one with the lowest key. */
static inline int oldest_of(const model *m, bool stored)
{
    int oldest = -1;

    for (int i = 0; i < IDS; i++)
        if (is_live(m, i, stored) && (oldest < 0 || m->rows[i].used < m->rows[oldest].used))
            oldest = i;
    return oldest;
}

static inline int oldest_beyond(const model *m, int before)
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
static inline int least_used_of(const model *m)
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

static inline void forget(model_row *r)
{
    r->stored = false;
    r->pushes = 0;
}

static inline void evict(model *m, bool stored)
{
    const wf_row_policy *p = &m->policy;

    for (int i = 0; i < IDS; i++)
        if (is_live(m, i, stored) && p->evict_after &&
            m->updates - m->rows[i].used >= p->evict_after)
            forget(&m->rows[i]);
    while (p->max_rows && !p->fails_full && count_live(m, stored) > p->max_rows)
        forget(&m->rows[stored && p->by_frequency ? least_used_of(m) : oldest_of(m, stored)]);
}

static inline void update(model *m, int i, const float gradient[])
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

static inline void name_rows(named *n, uint64_t rows)
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
static inline void draw(named *n, wf_rng_key key, uint64_t round)
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

static inline void name_all(named *n)
{
    for (int i = 0; i < IDS; i++)
        n->at[i] = i;
    name_rows(n, IDS);
}

/* ---- comparisons ---- */

static inline void compare_pull(const wf_slice *s, const model *m)
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

static inline int place_of_id(int64_t id)
{
    for (int i = 0; i < IDS; i++)
        if (ids[i] == id)
            return i;
    fail();
    return -1;
}

/* A copy against the model of its time. */
static inline void compare_copy(const wf_slice *copy, const model *m)
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

static inline wf_status read_all(void *arg, const wf_slice *s, const char *slot, void **out,
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

static inline wf_dtype dtype_of_copy(void *arg, const wf_slice *s)
{
    (void)s;
    return wf_slice_dtype(arg);
}

static inline wf_slice *open_slice(const model *m)
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

static inline void save_and_load(wf_slice **s, const model *m)
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

static inline void push_to_model(model *m, const named *n)
{
    m->updates++;
    for (uint64_t i = 0; i < n->part.rows.n; i++)
        update(m, n->at[i], n->values + i * WIDTH);
    evict(m, true);
    evict(m, false);
}

static inline void push(wf_slice *s, model *m, const named *n)
{
    assert_int_equal(s->ops->check(s, &n->part, NULL), WF_OK);
    assert_int_equal(wf_slice_apply(s, &m->opt, &n->part, NULL), WF_OK);
    push_to_model(m, n);
}

static inline void run(const char *rule, wf_row_policy policy, uint64_t seed)
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

static inline model *begin(wf_row_policy policy, wf_slice **s)
{
    model *m = calloc(1, sizeof *m);

    m->policy = policy;
    assert_int_equal(wf_opt_init(&m->opt, "adagrad", 0, NULL, NULL, NULL), WF_OK);
    *s = open_slice(m);
    return m;
}

/* Of each group of tests. */
static inline int set_up(void **state)
{
    (void)state;
    choose_ids();
    return 0;
}

#endif
