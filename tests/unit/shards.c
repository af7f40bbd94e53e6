/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/shards.c - under `shard: file`: batches and splits end with the files, workers get
 * files of their own, and what a lost one left behind is dealt again. */
#include "master/epoch/shards.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "master/epoch/ledger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void files_without_records_and_behind_the_data_do_not_count(void **state)
{
    static const uint64_t ends[] = {0, 10, 10, 25, 40, 60};
    wf_shards s = {0};

    (void)state;
    assert_int_equal(wf_shards_take(&s, 6, ends, 30, NULL), WF_OK);
    assert_int_equal(s.n, 3);
    assert_memory_equal(s.ends, ((const uint64_t[]){10, 25, 30}), 3 * sizeof(uint64_t));
    assert_int_equal(wf_shards_take(&s, 6, ends, 61, NULL), WF_INVALID);
    assert_int_equal(s.n, 3); /* as it was */
    assert_int_equal(wf_shards_take(&s, 0, NULL, 61, NULL), WF_OK);
    assert_true(s.n == 0 && !s.ends);
    wf_shards_close(&s);
}

/* Counted batch by batch. */
static void batches_end_with_the_files(void **state)
{
    static const uint64_t ends[] = {10, 25, 26, 60};

    (void)state;
    for (uint64_t batch = 1; batch < 20; batch++)
        for (size_t n = 0; n <= 4; n += 4) {
            uint64_t records = 60, at = 0, count = 0;
            wf_shards s = {0};

            assert_int_equal(wf_shards_take(&s, n, ends, records, NULL), WF_OK);
            assert_int_equal(wf_shards_records(&s, records, 0, batch), 0);
            while (at < records) {
                uint64_t end = WF_MIN(at + batch, records);

                for (size_t i = 0; i < n; i++)
                    if (at < ends[i] && ends[i] < end)
                        end = ends[i];
                assert_int_equal(wf_shards_batches(&s, at, batch), count);
                count++;
                for (uint64_t k = at + 1; k <= end; k++)
                    assert_int_equal(wf_shards_batches(&s, k, batch), count);
                assert_int_equal(wf_shards_records(&s, records, count, batch), end);
                at = end;
            }
            assert_int_equal(wf_shards_records(&s, records, UINT64_MAX, batch), records);
            wf_shards_close(&s);
        }
}

/* Files of 25, 5 and 40 records, in splits of 10: 0 to 2, 3, and 4 to 7. */
static const uint64_t three[] = {25, 30, 70};

static void expect(wf_ledger *l, uint64_t incarnation, int host, uint64_t want)
{
    uint64_t id = 99;

    assert_true(wf_ledger_deal_near(l, incarnation, host, &id));
    assert_int_equal(id, want);
}

static void no_split_is_of_two_files(void **state)
{
    static const uint64_t begins[] = {0, 10, 20, 25, 30, 40, 50, 60, 70};
    static const uint64_t orders[][2] = {{0, 25}, {0, 25}, {0, 25}, {25, 30}, {30, 70}};
    uint64_t begin, end;
    wf_ledger l = {0};

    (void)state;
    assert_int_equal(wf_ledger_begin_files(&l, 1, 70, 10, 3, three, NULL), WF_OK);
    assert_int_equal(l.n, 8);
    for (uint64_t i = 0; i < l.n; i++) {
        assert_int_equal(wf_ledger_begins(&l, i), begins[i]);
        assert_int_equal(wf_ledger_ends(&l, i), begins[i + 1]);
        assert_int_equal(l.rows[i].next, begins[i]);
        wf_ledger_order_of(&l, i, &begin, &end);
        assert_int_equal(begin, orders[WF_MIN(i, (uint64_t)4)][0]);
        assert_int_equal(end, orders[WF_MIN(i, (uint64_t)4)][1]);
    }
    /* Cut short by "steps": the order is of all of the file all the same. */
    assert_int_equal(wf_ledger_begin_files(&l, 1, 42, 10, 3, three, NULL), WF_OK);
    assert_int_equal(l.n, 6);
    assert_int_equal(wf_ledger_ends(&l, 5), 42);
    wf_ledger_order_of(&l, 5, &begin, &end);
    assert_true(begin == 30 && end == 70);
    assert_int_equal(wf_ledger_begin_files(&l, 1, 71, 10, 3, three, NULL), WF_INVALID);
    assert_int_equal(wf_ledger_begin(&l, 1, 70, 10, NULL), WF_OK);
    wf_ledger_order_of(&l, 3, &begin, &end);
    assert_true(begin == 0 && end == 0 && l.n == 7);
    wf_ledger_close(&l);
}

static void a_worker_keeps_to_its_file_and_then_begins_another(void **state)
{
    wf_ledger l = {0};
    uint64_t id;

    (void)state;
    assert_int_equal(wf_ledger_begin_files(&l, 0, 70, 10, 3, three, NULL), WF_OK);
    expect(&l, 7, -1, 0);
    expect(&l, 8, -1, 3); /* a file of its own, though 1 and 2 are to do */
    expect(&l, 8, -1, 4);
    expect(&l, 7, -1, 1);
    expect(&l, 8, -1, 5);
    expect(&l, 7, -1, 2);
    expect(&l, 7, -1, 6); /* all are begun: nobody is idle */
    expect(&l, 9, -1, 7);
    assert_false(wf_ledger_deal_near(&l, 7, -1, &id));
    wf_ledger_close(&l);
}

static void what_a_lost_worker_had_begun_is_begun_anew(void **state)
{
    wf_ledger l = {0};

    (void)state;
    assert_int_equal(wf_ledger_begin_files(&l, 0, 70, 10, 3, three, NULL), WF_OK);
    expect(&l, 7, -1, 0);
    expect(&l, 8, -1, 3);
    expect(&l, 8, -1, 4);
    wf_ledger_progress(&l, 4, 8, 36);
    assert_int_equal(wf_ledger_release(&l, 8, true), 2);
    expect(&l, 9, -1, 3); /* both of its files are nobody's */
    assert_true(wf_ledger_finish(&l, 3, 9));
    expect(&l, 9, -1, 4);
    assert_int_equal(l.rows[4].next, 36);
    expect(&l, 9, -1, 5);
    /* Its splits are done, and so it holds none: its file is free for others too. */
    assert_true(wf_ledger_finish(&l, 4, 9) && wf_ledger_finish(&l, 5, 9));
    assert_int_equal(wf_ledger_release(&l, 9, true), 0);
    expect(&l, 10, -1, 6);
    expect(&l, 7, -1, 1);
    /* A link that broke: what is claimed is as it was before. */
    assert_int_equal(wf_ledger_release(&l, 7, false), 2);
    assert_true(wf_ledger_claim(&l, 0, 7, 4) && wf_ledger_claim(&l, 1, 7, 10));
    expect(&l, 11, -1, 2); /* not unbegun: only the last resort */
    wf_ledger_close(&l);
}

static void the_nearest_file_is_begun_first(void **state)
{
    /* Files 0 and 1 are near host 1, file 2 near host 0. */
    static const uint64_t near[] = {2, 2, 2, 0, 1, 1, 1, 1};
    wf_ledger l = {0};

    (void)state;
    assert_int_equal(wf_ledger_begin_files(&l, 0, 70, 10, 3, three, NULL), WF_OK);
    assert_int_equal(wf_ledger_place(&l, 2, near, NULL), WF_OK);
    expect(&l, 7, 0, 4);
    expect(&l, 8, 0, 3); /* near none, before what is near another */
    expect(&l, 9, 1, 0);
    expect(&l, 8, 0, 5); /* near it, of a file that 7 has begun */
    wf_ledger_close(&l);
}

/* Each position is trained once, whatever is restored, dies and comes back. */
static void every_history_trains_each_record_once(void **state)
{
    enum { MOST = 300, WORKERS = 4 };

    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        wf_rng_key key = {seed, 3};
        uint64_t ends[8], n = 1 + wf_rng_below(key, 0, 8), end = 0, draw = 10, id;
        uint8_t trained[MOST] = {0};
        wf_ledger l = {0};

        for (uint64_t i = 0; i < n; i++)
            ends[i] = end += 1 + wf_rng_below(key, 1 + i, MOST / 8);
        assert_int_equal(
            wf_ledger_begin_files(&l, 0, end, 1 + wf_rng_below(key, 9, 20), n, ends, NULL), WF_OK);
        if (seed % 3 == 0) {
            uint64_t from = wf_rng_below(key, draw++, end);

            wf_ledger_restore(&l, 0, from);
            for (uint64_t i = 0; i < l.n; i++)
                for (uint64_t at = wf_ledger_begins(&l, i); at < l.rows[i].next; at++)
                    trained[at]++;
        }
        while (!wf_ledger_complete(&l)) {
            uint64_t who = 1 + wf_rng_below(key, draw++, WORKERS), begin, file_end;

            if (wf_rng_below(key, draw++, 10) == 0)
                wf_ledger_release(&l, who, false);
            if (!wf_ledger_deal(&l, who, &id))
                continue;
            wf_ledger_order_of(&l, id, &begin, &file_end);
            assert_true(begin <= wf_ledger_begins(&l, id) && wf_ledger_ends(&l, id) <= file_end);
            if (wf_rng_below(key, draw++, 3) == 0)
                continue; /* it keeps this one until it dies */
            for (uint64_t at = l.rows[id].next; at < wf_ledger_ends(&l, id); at++)
                trained[at]++;
            assert_true(wf_ledger_finish(&l, id, who));
            for (uint64_t w = 1; !wf_ledger_any_to_do(&l) && w <= WORKERS; w++)
                wf_ledger_release(&l, w, false);
        }
        for (uint64_t at = 0; at < end; at++)
            assert_int_equal(trained[at], 1);
        wf_ledger_close(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_without_records_and_behind_the_data_do_not_count),
        cmocka_unit_test(batches_end_with_the_files),
        cmocka_unit_test(no_split_is_of_two_files),
        cmocka_unit_test(a_worker_keeps_to_its_file_and_then_begins_another),
        cmocka_unit_test(what_a_lost_worker_had_begun_is_begun_anew),
        cmocka_unit_test(the_nearest_file_is_begun_first),
        cmocka_unit_test(every_history_trains_each_record_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
