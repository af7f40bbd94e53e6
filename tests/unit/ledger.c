/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/ledger.c - every position is in one split, and a split is done by who holds it. */
#include "master/epoch/ledger.h"
#include "common/base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void splits_cover_the_epoch_without_gap(void **state)
{
    wf_ledger l = {0};

    (void)state;
    assert_int_equal(wf_ledger_begin(&l, 2, 105, 10, NULL), WF_OK);
    assert_int_equal(l.n, 11);
    for (uint64_t i = 0, at = 0; i < l.n; i++) {
        assert_int_equal(wf_ledger_begins(&l, i), at);
        at = wf_ledger_ends(&l, i);
        assert_true(i + 1 < l.n || at == 105);
    }
    wf_ledger_close(&l);
}

static void sizes_that_cannot_be_are_refused(void **state)
{
    wf_ledger l = {0};

    (void)state;
    assert_int_equal(wf_ledger_begin(&l, 0, 0, 10, NULL), WF_INVALID);
    assert_int_equal(wf_ledger_begin(&l, 0, 10, 0, NULL), WF_INVALID);
    assert_int_equal(wf_ledger_begin(&l, 0, UINT64_MAX, 1, NULL), WF_INVALID);
    assert_null(l.rows);
}

static void only_the_holder_finishes_a_split(void **state)
{
    wf_ledger l = {0};
    uint64_t id = 99;

    (void)state;
    assert_int_equal(wf_ledger_begin(&l, 0, 30, 10, NULL), WF_OK);
    assert_false(wf_ledger_finish(&l, 0, 7));
    assert_true(wf_ledger_deal(&l, 7, &id));
    assert_int_equal(id, 0);
    assert_false(wf_ledger_finish(&l, 0, 8));
    assert_true(wf_ledger_finish(&l, 0, 7));
    assert_false(wf_ledger_finish(&l, 0, 7)); /* S3: once */
    assert_false(wf_ledger_finish(&l, 3, 7));
    assert_int_equal(l.done, 1);
    assert_int_equal(wf_ledger_trained(&l), 10);
    wf_ledger_close(&l);
}

static void what_a_dead_holder_had_trained_is_not_dealt_again(void **state)
{
    wf_ledger l = {0};
    uint64_t id;

    (void)state;
    assert_int_equal(wf_ledger_begin(&l, 0, 30, 10, NULL), WF_OK);
    assert_true(wf_ledger_deal(&l, 7, &id));
    wf_ledger_progress(&l, 0, 7, 4);
    wf_ledger_progress(&l, 0, 7, 2);  /* it never goes back, */
    wf_ledger_progress(&l, 0, 7, 11); /* nor beyond its end, */
    wf_ledger_progress(&l, 0, 8, 6);  /* nor by another's word */
    assert_int_equal(wf_ledger_release(&l, 7, true), 1);
    assert_int_equal(l.rows[0].deaths, 1);
    assert_true(wf_ledger_deal(&l, 9, &id));
    assert_int_equal(id, 0);
    assert_int_equal(l.rows[0].next, 4);
    wf_ledger_close(&l);
}

static void a_split_that_kills_is_dealt_alone_before_it_is_given_up(void **state)
{
    wf_ledger l = {0};
    uint64_t id;

    (void)state;
    assert_int_equal(wf_ledger_begin(&l, 0, 30, 10, NULL), WF_OK);
    for (uint64_t worker = 1; worker <= 2; worker++) {
        assert_true(wf_ledger_deal(&l, worker, &id));
        assert_true(wf_ledger_deal(&l, worker, &id));
        assert_int_equal(id, 1);
        assert_int_equal(wf_ledger_release(&l, worker, true), 2);
    }
    assert_int_equal(wf_ledger_release(&l, 2, true), 0); /* it held nothing any more */
    assert_true(wf_ledger_deal(&l, 3, &id));             /* one of the two did it */
    assert_int_equal(id, 0);
    assert_false(wf_ledger_deal(&l, 3, &id));
    assert_true(wf_ledger_deal(&l, 4, &id));
    assert_int_equal(id, 1);
    assert_true(wf_ledger_deal(&l, 5, &id));
    assert_int_equal(id, 2);
    assert_int_equal(wf_ledger_release(&l, 3, true), 1);
    assert_int_equal(wf_ledger_release(&l, 4, false), 1); /* silent: it may be cut off */
    assert_true(wf_ledger_deadly(&l, &id));
    assert_int_equal(id, 0);
    assert_true(wf_ledger_finish(&l, 0, 0));
    assert_false(wf_ledger_deadly(&l, &id));
    assert_false(wf_ledger_deal(&l, 5, &id)); /* it holds split 2 */
    assert_true(wf_ledger_deal(&l, 6, &id));
    assert_int_equal(id, 1);
    wf_ledger_close(&l);
}

static void who_came_further_did_not_die_of_the_same_records(void **state)
{
    wf_ledger l = {0};
    uint64_t id;

    (void)state;
    assert_int_equal(wf_ledger_begin(&l, 0, 30, 10, NULL), WF_OK);
    for (uint64_t worker = 1; worker <= 9; worker++) {
        assert_true(wf_ledger_deal(&l, worker, &id));
        assert_int_equal(id, 0);
        wf_ledger_progress(&l, 0, worker, worker);
        assert_int_equal(wf_ledger_release(&l, worker, true), 1);
        assert_false(wf_ledger_deadly(&l, &id));
    }
    wf_ledger_close(&l);
}

static void a_claim_is_good_for_what_nobody_else_holds(void **state)
{
    wf_ledger l = {0};
    uint64_t id;

    (void)state;
    assert_int_equal(wf_ledger_begin(&l, 0, 30, 10, NULL), WF_OK);
    assert_true(wf_ledger_claim(&l, 1, 7, 13));
    assert_false(wf_ledger_claim(&l, 1, 8, 15));
    assert_false(wf_ledger_claim(&l, 3, 7, 0));
    assert_int_equal(l.rows[1].next, 13);
    assert_true(wf_ledger_deal(&l, 8, &id));
    assert_int_equal(id, 0);
    assert_true(wf_ledger_deal(&l, 8, &id));
    assert_int_equal(id, 2);
    assert_false(wf_ledger_deal(&l, 8, &id));
    assert_true(wf_ledger_finish(&l, 1, 7));
    assert_false(wf_ledger_claim(&l, 1, 7, 13));
    wf_ledger_close(&l);
}

/* Against a list of positions: whatever ranges come back, no position is trained that none claims.
 */
static void a_restored_ledger_claims_no_more_than_the_ranges(void **state)
{
    enum { RECORDS = 103 };

    (void)state;
    for (uint64_t seed = 0; seed < 500; seed++) {
        wf_rng_key key = {seed, 5};
        bool trained[RECORDS] = {0};
        wf_ledger l = {0};

        assert_int_equal(wf_ledger_begin(&l, 0, RECORDS, 1 + wf_rng_below(key, 0, 20), NULL),
                         WF_OK);
        for (uint64_t k = 1; k < 6; k++) {
            uint64_t begin = wf_rng_below(key, 2 * k, RECORDS);
            uint64_t end = begin + wf_rng_below(key, 2 * k + 1, RECORDS - begin + 1);

            wf_ledger_restore(&l, begin, end);
            for (uint64_t i = begin; i < end; i++)
                trained[i] = true;
        }
        for (uint64_t i = 0; i < l.n; i++)
            for (uint64_t at = wf_ledger_begins(&l, i); at < l.rows[i].next; at++)
                assert_true(trained[at]);
        wf_ledger_close(&l);
    }
}

static void ranges_in_order_come_back_whole(void **state)
{
    wf_ledger l = {0};

    (void)state;
    assert_int_equal(wf_ledger_begin(&l, 0, 100, 10, NULL), WF_OK);
    wf_ledger_restore(&l, 0, 34);
    wf_ledger_restore(&l, 50, 100);
    assert_int_equal(l.done, 8);
    assert_int_equal(l.rows[3].next, 34);
    assert_int_equal(l.rows[4].next, 40);
    assert_int_equal(wf_ledger_trained(&l), 84);
    wf_ledger_restore(&l, 34, 50);
    assert_true(wf_ledger_complete(&l));
    wf_ledger_close(&l);
}

/* ---- against the plainest ledger that there is ---- */

enum { PLAIN_SPLITS = 300, PLAIN_WORKERS = 6 };

typedef struct plain_ledger {
    struct {
        int state, deaths;
        uint64_t holder, next;
    } rows[PLAIN_SPLITS];
} plain_ledger;

static bool plain_deal(plain_ledger *p, uint64_t worker, uint64_t *id)
{
    bool holds = false;

    for (int i = 0; i < PLAIN_SPLITS; i++)
        if (p->rows[i].state == WF_SPLIT_LEASED && p->rows[i].holder == worker) {
            if (p->rows[i].deaths + 1 >= WF_SPLIT_DEATHS)
                return false;
            holds = true;
        }
    for (int i = 0; i < PLAIN_SPLITS; i++)
        if (p->rows[i].state == WF_SPLIT_TODO &&
            !(holds && p->rows[i].deaths + 1 >= WF_SPLIT_DEATHS)) {
            p->rows[i].state = WF_SPLIT_LEASED;
            p->rows[i].holder = worker;
            *id = (uint64_t)i;
            return true;
        }
    return false;
}

static uint32_t plain_release(plain_ledger *p, uint64_t worker, bool died)
{
    uint32_t n = 0;

    for (int i = 0; i < PLAIN_SPLITS; i++)
        if (p->rows[i].state == WF_SPLIT_LEASED && p->rows[i].holder == worker) {
            p->rows[i].state = WF_SPLIT_TODO;
            p->rows[i].deaths += died;
            n++;
        }
    return n;
}

static bool plain_deadly(const plain_ledger *p, uint64_t *id)
{
    for (int i = 0; i < PLAIN_SPLITS; i++)
        if (p->rows[i].state == WF_SPLIT_TODO && p->rows[i].deaths >= WF_SPLIT_DEATHS) {
            *id = (uint64_t)i;
            return true;
        }
    return false;
}

static bool plain_claim(plain_ledger *p, uint64_t id, uint64_t worker)
{
    if (p->rows[id].state == WF_SPLIT_TODO) {
        p->rows[id].state = WF_SPLIT_LEASED;
        p->rows[id].holder = worker;
    }
    return p->rows[id].state == WF_SPLIT_LEASED && p->rows[id].holder == worker;
}

static bool plain_finish(plain_ledger *p, uint64_t id, uint64_t worker)
{
    if (p->rows[id].state == WF_SPLIT_FINISHED ||
        (worker && (p->rows[id].state != WF_SPLIT_LEASED || p->rows[id].holder != worker)))
        return false;
    p->rows[id].state = WF_SPLIT_FINISHED;
    p->rows[id].next = (id + 1) * 10;
    return true;
}

static void plain_progress(plain_ledger *p, uint64_t id, uint64_t worker, uint64_t next)
{
    if (p->rows[id].state == WF_SPLIT_LEASED && p->rows[id].holder == worker &&
        next > p->rows[id].next) {
        p->rows[id].next = next;
        p->rows[id].deaths = 0;
    }
}

static void compare(const wf_ledger *l, const plain_ledger *p)
{
    uint64_t trained = 0, held = 0, a = 0, b = 0;
    bool deadly = plain_deadly(p, &a);

    for (uint64_t i = 0; i < PLAIN_SPLITS; i++) {
        assert_int_equal(l->rows[i].state, p->rows[i].state);
        assert_int_equal(l->rows[i].next, p->rows[i].next);
        trained += p->rows[i].next - i * 10;
        held += p->rows[i].state == WF_SPLIT_LEASED;
    }
    assert_int_equal(wf_ledger_trained(l), trained);
    assert_int_equal(wf_ledger_deadly(l, &b), deadly);
    assert_true(!deadly || a == b);
    for (uint64_t worker = 1; worker <= PLAIN_WORKERS; worker++)
        for (uint64_t id = UINT64_MAX; wf_ledger_held(l, worker, &id); held--) {
            assert_int_equal(p->rows[id].state, WF_SPLIT_LEASED);
            assert_int_equal(p->rows[id].holder, worker);
        }
    assert_int_equal(held, 0);
}

static void it_does_what_the_plainest_ledger_does(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        wf_rng_key key = {seed, 9};
        plain_ledger p = {0};
        wf_ledger l = {0};

        assert_int_equal(wf_ledger_begin(&l, 0, PLAIN_SPLITS * 10, 10, NULL), WF_OK);
        for (uint64_t i = 0; i < PLAIN_SPLITS; i++)
            p.rows[i].next = i * 10;
        for (uint64_t k = 0; k < 600; k++) {
            uint64_t worker = 1 + wf_rng_below(key, 4 * k, PLAIN_WORKERS);
            uint64_t what = wf_rng_below(key, 4 * k + 1, 12);
            uint64_t id = wf_rng_below(key, 4 * k + 2, seed % 2 ? PLAIN_SPLITS : 12);
            uint64_t other = id, next = id * 10 + wf_rng_below(key, 4 * k + 3, 11);

            if (what < 5) {
                assert_int_equal(wf_ledger_deal(&l, worker, &id), plain_deal(&p, worker, &other));
                assert_int_equal(id, other);
            } else if (what < 7) {
                assert_int_equal(wf_ledger_release(&l, worker, what == 5),
                                 plain_release(&p, worker, what == 5));
            } else if (what < 9) {
                wf_ledger_progress(&l, id, worker, next);
                plain_progress(&p, id, worker, next);
            } else if (what == 9) {
                assert_int_equal(wf_ledger_claim(&l, id, worker, id * 10),
                                 plain_claim(&p, id, worker));
            } else {
                uint64_t by = seed % 3 || what == 10 ? worker : 0;

                assert_int_equal(wf_ledger_finish(&l, id, by), plain_finish(&p, id, by));
            }
            compare(&l, &p);
        }
        wf_ledger_close(&l);
    }
}

/* The largest epoch: what is dealt, given back and finished costs no more than in a small one. */
static void the_largest_epoch_is_dealt_in_a_moment(void **state)
{
    enum { SPLITS = 1 << 24, ROUNDS = 200000 };
    wf_ledger l = {0};
    uint64_t id = 0;

    (void)state;
    assert_int_equal(wf_ledger_begin(&l, 0, SPLITS, 1, NULL), WF_OK);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        assert_true(wf_ledger_deal(&l, 1 + i % 1000, &id));
        if (i % 3 == 0)
            wf_ledger_release(&l, 1 + i % 1000, false);
        else if (i % 3 == 1)
            assert_true(wf_ledger_finish(&l, id, 1 + i % 1000));
        assert_true(wf_ledger_trained(&l) == l.done && !wf_ledger_deadly(&l, &id));
    }
    wf_ledger_restore(&l, 0, SPLITS);
    assert_true(wf_ledger_complete(&l));
    assert_false(wf_ledger_deal(&l, 1, &id));
    wf_ledger_close(&l);
}

/* Splits 0 and 1 are near host 0; 2 and 3 near host 1; 4 near both; 5 near none. */
static void place_six(wf_ledger *l)
{
    static const uint64_t near[] = {1, 1, 2, 2, 3, 0};

    assert_int_equal(wf_ledger_begin(l, 0, 60, 10, NULL), WF_OK);
    assert_int_equal(wf_ledger_place(l, 2, near, NULL), WF_OK);
}

static void expect_dealt(wf_ledger *l, uint64_t incarnation, int host, uint64_t want)
{
    uint64_t id = 99;

    assert_true(wf_ledger_deal_near(l, incarnation, host, &id));
    assert_int_equal(id, want);
    assert_true(wf_ledger_finish(l, id, incarnation));
}

static void splits_go_to_hosts_that_they_are_near(void **state)
{
    wf_ledger l = {0};
    uint64_t id;

    (void)state;
    place_six(&l);
    assert_true(wf_ledger_is_near(&l, 4, 0) && wf_ledger_is_near(&l, 4, 1));
    assert_false(wf_ledger_is_near(&l, 2, 0) || wf_ledger_is_near(&l, 2, -1) ||
                 wf_ledger_is_near(&l, 5, 0) || wf_ledger_is_near(&l, 2, 7));
    expect_dealt(&l, 7, 1, 2);
    expect_dealt(&l, 7, 1, 3);
    expect_dealt(&l, 8, 0, 0);
    expect_dealt(&l, 7, 1, 4);
    expect_dealt(&l, 7, 1, 5); /* near none, before those of others; */
    expect_dealt(&l, 7, 1, 1); /* but nobody is idle */
    assert_false(wf_ledger_deal_near(&l, 7, 1, &id));
    assert_true(wf_ledger_complete(&l));
    wf_ledger_close(&l);
}

static void who_is_near_nothing_takes_what_is_near_none_first(void **state)
{
    wf_ledger l = {0};

    (void)state;
    place_six(&l);
    expect_dealt(&l, 9, -1, 5);
    expect_dealt(&l, 9, -1, 0);
    expect_dealt(&l, 9, 5, 1); /* a host that nobody named */
    wf_ledger_close(&l);
}

static void what_comes_back_is_near_as_before(void **state)
{
    wf_ledger l = {0};
    uint64_t id;

    (void)state;
    place_six(&l);
    assert_true(wf_ledger_deal_near(&l, 7, 1, &id));
    assert_int_equal(id, 2);
    assert_int_equal(wf_ledger_release(&l, 7, true), 1);
    assert_int_equal(wf_ledger_release(&l, 7, true), 0);
    assert_true(wf_ledger_claim(&l, 3, 8, 30)); /* it is taken from the set of its host too */
    expect_dealt(&l, 9, 1, 2);
    expect_dealt(&l, 9, 1, 4);
    wf_ledger_restore(&l, 0, 20);
    assert_int_equal(l.done, 4);
    expect_dealt(&l, 9, 0, 5);
    assert_false(wf_ledger_deal_near(&l, 9, 0, &id)); /* 3 is leased */
    wf_ledger_close(&l);
}

static void without_a_word_of_hosts_splits_are_dealt_in_order(void **state)
{
    wf_ledger l = {0};

    (void)state;
    assert_int_equal(wf_ledger_begin(&l, 0, 60, 10, NULL), WF_OK);
    for (uint64_t i = 0; i < 6; i++)
        expect_dealt(&l, 7, (int)i % 3 - 1, i);
    wf_ledger_close(&l);
}

static void what_is_said_later_counts_for_what_is_to_do(void **state)
{
    static const uint64_t near[] = {1, 2, 1, 2, 1, 2};
    uint64_t many[6] = {0}, id;
    wf_ledger l = {0};

    (void)state;
    assert_int_equal(wf_ledger_begin(&l, 0, 60, 10, NULL), WF_OK);
    expect_dealt(&l, 7, 0, 0);
    assert_true(wf_ledger_deal(&l, 8, &id));
    assert_int_equal(wf_ledger_place(&l, 2, near, NULL), WF_OK);
    expect_dealt(&l, 7, 1, 3); /* 1 is leased */
    assert_int_equal(wf_ledger_place(&l, WF_LEDGER_HOSTS + 1, many, NULL), WF_INVALID);
    expect_dealt(&l, 7, 1, 2); /* nothing is near */
    wf_ledger_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_go_to_hosts_that_they_are_near),
        cmocka_unit_test(who_is_near_nothing_takes_what_is_near_none_first),
        cmocka_unit_test(what_comes_back_is_near_as_before),
        cmocka_unit_test(without_a_word_of_hosts_splits_are_dealt_in_order),
        cmocka_unit_test(what_is_said_later_counts_for_what_is_to_do),
        cmocka_unit_test(splits_cover_the_epoch_without_gap),
        cmocka_unit_test(sizes_that_cannot_be_are_refused),
        cmocka_unit_test(only_the_holder_finishes_a_split),
        cmocka_unit_test(what_a_dead_holder_had_trained_is_not_dealt_again),
        cmocka_unit_test(a_split_that_kills_is_dealt_alone_before_it_is_given_up),
        cmocka_unit_test(who_came_further_did_not_die_of_the_same_records),
        cmocka_unit_test(a_claim_is_good_for_what_nobody_else_holds),
        cmocka_unit_test(a_restored_ledger_claims_no_more_than_the_ranges),
        cmocka_unit_test(ranges_in_order_come_back_whole),
        cmocka_unit_test(it_does_what_the_plainest_ledger_does),
        cmocka_unit_test(the_largest_epoch_is_dealt_in_a_moment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
