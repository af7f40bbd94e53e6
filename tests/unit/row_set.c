/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/row_set.c - a set of rows against a plain list: rows come, are used and go in any
 * order, while the index grows and shrinks; and keys of ids that come back as the ids. */
#include "ps/row_set.h"
#include "common/base/rng.h"
#include "common/base/row_key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
    MOST = 6000,
    BUCKET = 41,
    BODY = 3,                /* words */
    APART = 311,             /* updates from one round to the next: eras end, some without a row */
    BEFORE_WRAP = 1000 * 311 /* updates until their count begins at 0 again */
};

typedef struct model {
    uint64_t keys[MOST];  /* [n] */
    uint32_t words[MOST]; /* what the body of each says */
    uint32_t used[MOST];
    uint32_t n;
} model;

static uint64_t in_bucket(uint64_t key)
{
    return key >> WF_ROW_BUCKET_BITS | (uint64_t)BUCKET << (64 - WF_ROW_BUCKET_BITS);
}

/* Keys as they come, or all with one home: the longest run there can be. Then as many as there are
 * tags have one stem. */
static uint64_t draw_key(wf_rng_key key, uint64_t i, bool narrow)
{
    return in_bucket(narrow ? i << WF_ROW_BUCKET_BITS : wf_rng_u64(key, i));
}

static void add(wf_row_set *s, model *m, uint64_t key, uint32_t now)
{
    uint32_t *body;
    int32_t row;

    assert_int_equal(wf_row_set_find(s, key), WF_NO_RECORD);
    assert_int_equal(wf_row_set_reserve(s, 1, 1, NULL), WF_OK);
    row = wf_row_set_add(s, key, now);
    body = wf_row_set_body(s, row);
    for (int k = 0; k < BODY; k++)
        body[k] = now + (uint32_t)k;
    m->keys[m->n] = key;
    m->used[m->n] = now;
    m->words[m->n++] = now;
}

/* The model keeps the order of use: the oldest first. */
static void take_out(model *m, uint32_t at)
{
    memmove(m->keys + at, m->keys + at + 1, (m->n - at - 1) * sizeof *m->keys);
    memmove(m->words + at, m->words + at + 1, (m->n - at - 1) * sizeof *m->words);
    memmove(m->used + at, m->used + at + 1, (m->n - at - 1) * sizeof *m->used);
    m->n--;
}

static void use(wf_row_set *s, model *m, uint32_t at, uint32_t now)
{
    uint64_t key = m->keys[at];
    uint32_t word = m->words[at];

    assert_int_equal(wf_row_set_reserve(s, 0, 1, NULL), WF_OK);
    wf_row_set_use(s, wf_row_set_find(s, key), now);
    if (!s->ordered)
        return;
    take_out(m, at);
    m->keys[m->n] = key;
    m->used[m->n] = now;
    m->words[m->n++] = word;
}

static void compare(const wf_row_set *s, const model *m)
{
    wf_row_use use = wf_row_set_first(s);

    assert_int_equal(s->records.n, m->n);
    for (uint32_t i = 0; i < m->n; i++) {
        int32_t at = wf_row_set_find(s, m->keys[i]);
        const uint32_t *body;

        assert_in_range(at, 0, m->n - 1);
        assert_true(wf_row_set_key(s, at) == m->keys[i]);
        body = wf_row_set_body(s, at);
        for (int k = 0; k < BODY; k++)
            assert_int_equal(body[k], m->words[i] + (uint32_t)k);
        if (!s->ordered)
            continue;
        assert_int_equal(use.row, at);
        assert_int_equal(use.used, m->used[i]);
        use = wf_row_set_next(s, use);
    }
    for (uint32_t i = 0; !s->ordered && i < m->n; i++, use = wf_row_set_next(s, use))
        assert_int_equal(use.row, i);
    assert_int_equal(use.row, WF_NO_RECORD);
}

/* Rows come more often than they go for some rounds, then less often. */
static void run(bool ordered, bool narrow, uint32_t rounds, uint64_t seed)
{
    const wf_rng_key key = {seed, 1}, choice = {seed, 2};
    model *m = calloc(1, sizeof *m);
    wf_row_set s;

    wf_row_set_init(&s, BUCKET, BODY * sizeof(uint32_t), ordered);
    for (uint32_t round = 1; round <= rounds; round++) {
        double p = wf_rng_f64(choice, 2 * round);
        bool grows = round / (rounds / 4) % 2 == 0;
        uint32_t at = m->n ? (uint32_t)wf_rng_below(choice, 2 * round + 1, m->n) : 0;
        uint32_t now = round * APART - BEFORE_WRAP;

        if (m->n == 0 || (m->n < MOST && p < (grows ? 0.6 : 0.1))) {
            add(&s, m, draw_key(key, round, narrow), now);
        } else if (p < 0.7) {
            use(&s, m, at, now);
        } else {
            wf_row_set_remove(&s, wf_row_set_find(&s, m->keys[at]));
            assert_int_equal(wf_row_set_find(&s, m->keys[at]), WF_NO_RECORD);
            take_out(m, at);
        }
        if (round % 11 == 0)
            wf_row_set_trim(&s);
        if (round % 997 == 0)
            compare(&s, m);
    }
    compare(&s, m);
    while (m->n) {
        wf_row_set_remove(&s, wf_row_set_find(&s, m->keys[0]));
        take_out(m, 0);
        wf_row_set_trim(&s);
    }
    assert_in_range(wf_row_set_bytes(&s), 0, 1 << 18);
    compare(&s, m);
    wf_row_set_close(&s);
    free(m);
}

static void a_set_is_what_a_plain_list_says(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        run(true, false, 20000, seed);
        run(false, false, 20000, seed);
    }
}

static void keys_of_one_place_are_told_apart(void **state)
{
    (void)state;
    run(true, true, 3000, 9);
}

static void many_are_found_as_one_by_one(void **state)
{
    enum { N = 500 };
    const wf_rng_key key = {3, 4};
    uint8_t ids[N * sizeof(uint64_t)];
    const wf_rows rows = {N, ids};
    int32_t found[N];
    wf_row_set s;

    (void)state;
    wf_row_set_init(&s, BUCKET, sizeof(uint32_t), false);
    for (uint64_t i = 0; i < N; i++) {
        wf_put_u64(ids + i * sizeof(uint64_t), draw_key(key, i, false));
        assert_int_equal(wf_row_set_reserve(&s, 1, 1, NULL), WF_OK);
        if (i % 3)
            wf_row_set_add(&s, draw_key(key, i, false), 1);
        wf_row_set_find_all(&s, &rows, 0, i + 1, found);
        for (uint64_t k = 0; k <= i; k++)
            assert_int_equal(found[k], wf_row_set_find(&s, draw_key(key, k, false)));
    }
    wf_row_set_find_all(&s, &rows, 100, 7, found);
    assert_int_equal(found[0], wf_row_set_find(&s, draw_key(key, 100, false)));
    wf_row_set_close(&s);
}

static void rows_beyond_the_most_are_refused(void **state)
{
    wf_row_set s;
    wf_err err;

    (void)state;
    wf_row_set_init(&s, BUCKET, sizeof(uint32_t), false);
    assert_int_equal(wf_row_set_reserve(&s, (uint64_t)WF_RECORDS_MOST + 1, 1, &err), WF_FULL);
    assert_int_equal(wf_row_set_reserve(&s, UINT64_MAX, 1, &err), WF_FULL);
    assert_int_equal(wf_row_set_bytes(&s), 0);
    wf_row_set_close(&s);
}

/* Adding so many at a time as to outrun the moves of the index. */
static void many_come_at_once(void **state)
{
    const wf_rng_key key = {7, 8};
    uint64_t n = 0;
    wf_row_set s;

    (void)state;
    wf_row_set_init(&s, BUCKET, sizeof(uint32_t), true);
    for (uint64_t more = 1; n < 200000; more = more * 3 + 1) {
        assert_int_equal(wf_row_set_reserve(&s, more, 1, NULL), WF_OK);
        for (uint64_t i = 0; i < more; i++)
            wf_row_set_add(&s, draw_key(key, n++, false), 1);
        for (uint64_t i = 0; i < n; i += 1 + n / 500)
            assert_int_equal(wf_row_set_find(&s, draw_key(key, i, false)), i);
    }
    wf_row_set_close(&s);
    wf_row_set_init(&s, BUCKET, sizeof(uint32_t),
                    false); /* from nothing to an index of its own pages */
    assert_int_equal(wf_row_set_reserve(&s, 400000, 1, NULL), WF_OK);
    wf_row_set_add(&s, draw_key(key, 1, false), 1);
    assert_int_equal(wf_row_set_find(&s, draw_key(key, 1, false)), 0);
    wf_row_set_close(&s);
}

static void a_key_gives_its_id_back(void **state)
{
    const int64_t ids[] = {0, 1, -1, 63, INT64_MIN, INT64_MAX, 1234567890123456789};
    const wf_rng_key key = {5, 6};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(ids); i++)
        assert_int_equal(wf_row_id_of_key(wf_row_key(ids[i])), ids[i]);
    for (uint64_t i = 0; i < 1000; i++) {
        int64_t id = (int64_t)wf_rng_u64(key, i);

        assert_int_equal(wf_row_id_of_key(wf_row_key(id)), id);
        assert_in_range(wf_row_bucket(wf_row_key(id)), 0, WF_ROW_BUCKETS - 1);
    }
    /* of SplitMix64 with the state 0, after Vigna's splitmix64.c: its first number */
    assert_true(wf_row_key((int64_t)UINT64_C(0x9e3779b97f4a7c15)) == UINT64_C(0xe220a8397b1dcdaf));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_is_what_a_plain_list_says),
        cmocka_unit_test(keys_of_one_place_are_told_apart),
        cmocka_unit_test(many_are_found_as_one_by_one),
        cmocka_unit_test(rows_beyond_the_most_are_refused),
        cmocka_unit_test(many_come_at_once),
        cmocka_unit_test(a_key_gives_its_id_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
