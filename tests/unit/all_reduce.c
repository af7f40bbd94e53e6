/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/all_reduce.c - sums over the members of a group, with messages that arrive in any
 * order: all members have the same bits, for each order, and the sum is that of double precision.
 */
#include "worker/exchange/all_reduce.h"
#include "common/base/rng.h"
#include "common/base/size.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MEMBERS = 9, COUNT = 3001, MESSAGES = 2 * MEMBERS * 2 * MEMBERS };

typedef struct sent {
    uint32_t from, to, round;
    wf_reduce_arrival what;
} sent;

typedef struct group {
    uint32_t n;
    uint64_t count;
    wf_reduce_plan plans[MEMBERS];
    wf_reduce sums[MEMBERS];
    float data[MEMBERS][COUNT], own_sums[MEMBERS][COUNT], weights[MEMBERS];
    sent under_way[MESSAGES];
    uint32_t n_under_way;
    uint64_t elements_sent[MEMBERS];
} group;

static float value_of(uint32_t member, uint64_t i)
{
    return wf_rng_f32((wf_rng_key){77, member + 1}, i) - 0.5F;
}

static void open_group(group *g, wf_reduce_way way, uint32_t n, uint64_t count)
{
    *g = (group){.n = n, .count = count};
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(wf_reduce_plan_make(way, n, i, count, &g->plans[i], NULL), WF_OK);
        assert_int_equal(g->plans[i].n_rounds, g->plans[0].n_rounds);
        assert_int_equal(wf_reduce_init(&g->sums[i], &g->plans[i], NULL), WF_OK);
        g->weights[i] = 1;
        for (uint64_t k = 0; k < count; k++)
            g->data[i][k] = value_of(i, k);
    }
}

static void close_group(group *g)
{
    for (uint32_t i = 0; i < g->n; i++) {
        wf_reduce_close(&g->sums[i]);
        wf_reduce_plan_close(&g->plans[i]);
    }
}

/* What may be sent is copied when it leaves, as a transport does. Bytes lie at any address. */
static void send_all(group *g, uint32_t member)
{
    wf_reduce_message m;

    while (wf_reduce_next(&g->sums[member], &m)) {
        wf_buf *b = wf_buf_new(m.n * sizeof(float) + 1);
        uint8_t *to = (uint8_t *)b->data + (m.round + member) % 2;

        memcpy(to, (m.of_sum ? g->own_sums : g->data)[member] + m.at, m.n * sizeof(float));
        assert_true(g->n_under_way < MESSAGES);
        g->under_way[g->n_under_way++] = (sent){member, m.to, m.round, {b, to, m.n, m.weight}};
        g->elements_sent[member] += m.n;
    }
}

static void deliver(group *g, uint32_t i)
{
    sent m = g->under_way[i];

    g->under_way[i] = g->under_way[--g->n_under_way];
    assert_int_equal(wf_reduce_put(&g->sums[m.to], m.from, m.round, &m.what, NULL), WF_OK);
    wf_buf_unref(&m.what.buf);
    send_all(g, m.to);
}

/* Members begin at any time, and any message under way arrives next. */
static void run(group *g, uint64_t seed)
{
    const wf_rng_key key = {seed, 5};
    uint32_t begun = 0;

    for (uint64_t draw = 0; begun < g->n || g->n_under_way > 0; draw++) {
        uint64_t pick = wf_rng_below(key, draw, g->n_under_way + (begun < g->n ? 1u : 0u));

        if (pick < g->n_under_way) {
            deliver(g, (uint32_t)pick);
        } else {
            uint32_t member = (begun++ + (uint32_t)seed) % g->n;

            wf_reduce_begin(&g->sums[member], g->data[member], g->weights[member],
                            g->own_sums[member]);
            send_all(g, member);
        }
    }
    for (uint32_t i = 0; i < g->n; i++) {
        assert_true(wf_reduce_is_done(&g->sums[i]));
        assert_int_equal(wf_reduce_late(&g->sums[i]), UINT32_MAX);
    }
}

static void check_sum(const group *g)
{
    for (uint64_t k = 0; k < g->count; k++) {
        double want = 0;

        for (uint32_t i = 0; i < g->n; i++)
            want += value_of(i, k);
        assert_true(fabs(want - g->data[0][k]) < 1e-6);
    }
    for (uint32_t i = 1; i < g->n; i++)
        assert_memory_equal(g->data[i], g->data[0], g->count * sizeof(float));
}

static void sums_have_the_same_bits_for_any_order_of_messages(void **unused)
{
    static const uint64_t counts[] = {0, 1, 2, 5, 8, 63, 1000, COUNT};
    static const wf_reduce_way ways[] = {WF_REDUCE_RING, WF_REDUCE_HALVING, WF_REDUCE_BY_SIZE};
    static float first[COUNT];
    static group g;

    (void)unused;
    for (size_t w = 0; w < WF_COUNT(ways); w++)
        for (uint32_t n = 1; n <= MEMBERS; n++)
            for (size_t c = 0; c < WF_COUNT(counts); c++)
                for (uint64_t seed = 0; seed < 12; seed++) {
                    open_group(&g, ways[w], n, counts[c]);
                    run(&g, seed);
                    check_sum(&g);
                    if (seed == 0)
                        memcpy(first, g.data[0], sizeof first);
                    assert_memory_equal(first, g.data[0], counts[c] * sizeof(float));
                    close_group(&g);
                }
}

static void a_ring_sends_no_more_bytes_than_must_be(void **unused)
{
    static group g;

    (void)unused;
    for (uint32_t n = 2; n <= MEMBERS; n++) {
        open_group(&g, WF_REDUCE_RING, n, 2520); /* which all numbers up to 9 divide */
        run(&g, 3);
        for (uint32_t i = 0; i < n; i++)
            assert_int_equal(g.elements_sent[i], 2520 / n * 2 * (n - 1));
        close_group(&g);
    }
}

static void halving_takes_as_many_rounds_as_the_logarithm_says(void **unused)
{
    static const uint32_t rounds[MEMBERS + 1] = {0, 0, 2, 4, 4, 6, 6, 6, 6, 8};
    static group g;

    (void)unused;
    for (uint32_t n = 1; n <= MEMBERS; n++) {
        open_group(&g, WF_REDUCE_HALVING, n, 64);
        assert_int_equal(g.plans[0].n_rounds, rounds[n]);
        close_group(&g);
    }
}

/* Messages of the next sum go into the other of two. */
static void a_sum_begins_again(void **unused)
{
    static group g;

    (void)unused;
    open_group(&g, WF_REDUCE_RING, 3, 100);
    for (uint64_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 3; i++)
            for (uint64_t k = 0; k < 100; k++)
                g.data[i][k] = value_of(i, k);
        run(&g, round);
        check_sum(&g);
        for (uint32_t i = 0; i < 3; i++)
            wf_reduce_again(&g.sums[i]);
    }
    close_group(&g);
}

static void each_of_a_pair_keeps_the_array_of_the_other(void **unused)
{
    static group g;

    (void)unused;
    for (uint64_t seed = 0; seed < 4; seed++) {
        open_group(&g, WF_REDUCE_PAIR, 2, 100);
        run(&g, seed);
        for (uint32_t me = 0; me < 2; me++)
            for (uint64_t i = 0; i < 100; i++) {
                float other;

                memcpy(&other, wf_reduce_kept(&g.sums[me]) + i * sizeof other, sizeof other);
                assert_true(other == value_of(1 - me, i));
                assert_true(g.data[me][i] == value_of(me, i));
            }
        for (uint32_t me = 0; me < 2; me++)
            wf_reduce_again(&g.sums[me]);
        close_group(&g);
    }
    assert_int_equal(wf_reduce_plan_make(WF_REDUCE_PAIR, 3, 0, 9, &g.plans[0], NULL), WF_INVALID);
}

static void take_direct_sum(const wf_reduce *r, uint64_t count, float to[])
{
    for (uint64_t at = 0, n; at < count; at += n) {
        const uint8_t *from = wf_reduce_sum_at(r, at, &n);

        assert_true(n > 0 && n <= count - at);
        memcpy(to + at, from, n * sizeof *to);
    }
}

/* Also when others' messages come before it begins. */
static void a_direct_sum_is_weighted_and_leaves_the_arrays(void **unused)
{
    static const uint64_t counts[] = {0, 1, 2, 5, 8, 63, 1000, COUNT};
    static float first[COUNT], sum[COUNT];
    static group g;

    (void)unused;
    for (uint32_t n = 2; n <= MEMBERS; n++)
        for (size_t c = 0; c < WF_COUNT(counts); c++)
            for (uint64_t seed = 0; seed < 12; seed++) {
                open_group(&g, WF_REDUCE_DIRECT, n, counts[c]);
                for (uint32_t i = 0; i < n; i++)
                    g.weights[i] = (float)(i * 5 % 7); /* 0 among them */
                run(&g, seed);
                for (uint32_t i = 0; i < n; i++) {
                    take_direct_sum(&g.sums[i], counts[c], sum);
                    if (seed == 0 && i == 0)
                        memcpy(first, sum, sizeof first);
                    assert_memory_equal(first, sum, counts[c] * sizeof(float));
                }
                for (uint64_t k = 0; k < counts[c]; k++) {
                    double want = 0;

                    for (uint32_t i = 0; i < n; i++) {
                        want += (double)g.weights[i] * value_of(i, k);
                        assert_true(g.data[i][k] == value_of(i, k));
                    }
                    assert_true(fabs(want - sum[k]) < 1e-5);
                }
                for (uint32_t i = 0; i < n; i++)
                    wf_reduce_again(&g.sums[i]);
                close_group(&g);
            }
}

/* Each element goes to the owner of its part, and its sum to all. */
static void a_direct_sum_sends_as_many_bytes_as_a_ring(void **unused)
{
    static group g;

    (void)unused;
    for (uint32_t n = 2; n <= MEMBERS; n++) {
        uint64_t total = 0;

        open_group(&g, WF_REDUCE_DIRECT, n, COUNT);
        run(&g, 3);
        for (uint32_t i = 0; i < n; i++) {
            assert_int_equal(g.plans[i].own_at % 16, 0); /* a cache line */
            total += g.elements_sent[i];
        }
        assert_int_equal(total, 2 * (n - 1) * COUNT);
        close_group(&g);
    }
}

/* Whoever has not sent its part of the array is waited for, then whoever has not sent its sum. */
static void a_direct_sum_takes_each_message_once_and_says_who_is_late(void **unused)
{
    wf_buf *b = wf_buf_new(COUNT * sizeof(float));
    const wf_reduce_arrival part = {b, b->data, 32, 1};
    static group g;

    (void)unused;
    memset(b->data, 0, b->bytes);
    open_group(&g, WF_REDUCE_DIRECT, 3, 96);
    assert_int_equal(wf_reduce_put(&g.sums[0], 1, 1, &part, NULL), WF_OK);
    assert_int_equal(wf_reduce_put(&g.sums[0], 1, 1, &part, NULL), WF_PROTO);
    assert_int_equal(wf_reduce_late(&g.sums[0]), UINT32_MAX); /* it has not begun */
    wf_reduce_begin(&g.sums[0], g.data[0], 1, g.own_sums[0]);
    send_all(&g, 0);
    assert_int_equal(g.n_under_way, 2);
    assert_int_equal(wf_reduce_late(&g.sums[0]), 2);
    assert_int_equal(wf_reduce_put(&g.sums[0], 1, 3, &part, NULL), WF_OK); /* of its sum */
    assert_int_equal(wf_reduce_put(&g.sums[0], 2, 0, &part, NULL), WF_OK);
    send_all(&g, 0);
    assert_int_equal(g.n_under_way, 4);
    assert_int_equal(wf_reduce_put(&g.sums[0], 2, 0, &part, NULL), WF_PROTO);
    assert_int_equal(wf_reduce_put(&g.sums[0], 1, 1, &part, NULL), WF_PROTO);
    assert_int_equal(wf_reduce_late(&g.sums[0]), 2);
    assert_false(wf_reduce_is_done(&g.sums[0]));
    assert_int_equal(wf_reduce_put(&g.sums[0], 2, 2, &part, NULL), WF_OK);
    assert_true(wf_reduce_is_done(&g.sums[0]));
    assert_int_equal(wf_reduce_put(&g.sums[0], 2, 2, &part, NULL), WF_PROTO);
    for (uint32_t i = 0; i < g.n_under_way; i++)
        wf_buf_unref(&g.under_way[i].what.buf);
    close_group(&g);
    wf_buf_unref(&b);
}

static void what_the_plan_does_not_expect_is_refused(void **unused)
{
    wf_buf *b = wf_buf_new(COUNT * sizeof(float));
    const wf_reduce_arrival part = {b, b->data, 33, 1}, longer = {b, b->data, 34, 1};
    static group g;

    (void)unused;
    open_group(&g, WF_REDUCE_RING, 3, 99);
    assert_int_equal(wf_reduce_put(&g.sums[0], 1, 0, &part, NULL), WF_PROTO);
    assert_int_equal(wf_reduce_put(&g.sums[0], 2, 4, &part, NULL), WF_PROTO);
    assert_int_equal(wf_reduce_put(&g.sums[0], 2, 0, &longer, NULL), WF_PROTO);
    assert_int_equal(wf_reduce_put(&g.sums[0], 2, 0, &part, NULL), WF_OK);
    assert_int_equal(wf_reduce_put(&g.sums[0], 2, 0, &part, NULL), WF_PROTO);
    wf_reduce_begin(&g.sums[0], g.data[0], 1, NULL);
    send_all(&g, 0);
    assert_int_equal(wf_reduce_late(&g.sums[0]), 2);
    assert_int_equal(wf_reduce_put(&g.sums[0], 2, 0, &part, NULL), WF_PROTO);
    for (uint32_t i = 0; i < g.n_under_way; i++)
        wf_buf_unref(&g.under_way[i].what.buf);
    close_group(&g);
    wf_buf_unref(&b);
    assert_int_equal(wf_reduce_plan_make(WF_REDUCE_RING, 3, 3, 9, &g.plans[0], NULL), WF_INVALID);
    assert_int_equal(wf_reduce_plan_make(WF_REDUCE_RING, 0, 0, 9, &g.plans[0], NULL), WF_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_have_the_same_bits_for_any_order_of_messages),
        cmocka_unit_test(a_ring_sends_no_more_bytes_than_must_be),
        cmocka_unit_test(halving_takes_as_many_rounds_as_the_logarithm_says),
        cmocka_unit_test(a_sum_begins_again),
        cmocka_unit_test(each_of_a_pair_keeps_the_array_of_the_other),
        cmocka_unit_test(a_direct_sum_is_weighted_and_leaves_the_arrays),
        cmocka_unit_test(a_direct_sum_sends_as_many_bytes_as_a_ring),
        cmocka_unit_test(a_direct_sum_takes_each_message_once_and_says_who_is_late),
        cmocka_unit_test(what_the_plan_does_not_expect_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
