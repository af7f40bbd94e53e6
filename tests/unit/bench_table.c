/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/bench_table.c - the batches of `weft bench --table`, and the loops beside it. */
#include "cmd/cli/bench/flat.h"
#include "cmd/cli/bench/ids.h"
#include "cmd/cli/bench/job.h"
#include "common/base/cc.h"
#include "common/optim/rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const wf_bench_draw *draw_of(const char *name)
{
    for (const wf_bench_draw *d = wf_bench_draws; d->name; d++)
        if (strcmp(d->name, name) == 0)
            return d;
    return NULL;
}

static void batches_name_each_row_once_in_rising_order(void **state)
{
    static const uint64_t tables[] = {1, 7, 1000, 1000003};

    (void)state;
    for (const wf_bench_draw *d = wf_bench_draws; d->name; d++)
        for (size_t k = 0; k < WF_COUNT(tables); k++) {
            wf_bench_ids b = {0};
            size_t n;

            assert_int_equal(wf_bench_ids_make(d, tables[k], 500, 3, 1, &b, NULL), WF_OK);
            for (uint64_t i = 0; i < 4; i++) { /* the fourth is the first again */
                const uint64_t *ids = wf_bench_ids_of(&b, i, &n);

                assert_in_range(n, 1, 500);
                for (size_t m = 0; m < n; m++)
                    assert_true(ids[m] < tables[k] && (m == 0 || ids[m] > ids[m - 1]));
            }
            assert_ptr_equal(wf_bench_ids_of(&b, 0, &n), wf_bench_ids_of(&b, 3, &n));
            wf_bench_ids_close(&b);
        }
}

/* Whether a row is in a batch tells how probable it is: 1 - (1 - p)^drawn. */
static double share_of_batches(const wf_bench_ids *b, uint64_t row)
{
    size_t n, found = 0;

    for (uint64_t i = 0; i < b->n; i++) {
        const uint64_t *ids = wf_bench_ids_of(b, i, &n);

        for (size_t k = 0; k < n; k++)
            found += ids[k] == row;
    }
    return (double)found / (double)b->n;
}

/* Against the sum of all weights; the rank k is at row k * 2654435761 modulo their number. Four
 * standard deviations of 4,000 batches are 0.032 at most. */
static void ids_follow_their_distribution(void **state)
{
    enum { ROWS = 1000, DRAWN = 10, N = 4000 };
    wf_bench_ids zipf = {0}, uniform = {0};
    double sum = 0;

    (void)state;
    for (int k = 1; k <= ROWS; k++)
        sum += pow(k, -1.05);
    assert_int_equal(wf_bench_ids_make(draw_of("zipf"), ROWS, DRAWN, N, 3, &zipf, NULL), WF_OK);
    assert_int_equal(wf_bench_ids_make(draw_of("uniform"), ROWS, DRAWN, N, 3, &uniform, NULL),
                     WF_OK);
    for (uint64_t rank = 0; rank < 20; rank++) {
        uint64_t row = rank * 2654435761 % ROWS;
        double p = pow((double)rank + 1, -1.05) / sum;

        assert_true(fabs(share_of_batches(&zipf, row) - (1 - pow(1 - p, DRAWN))) < 0.032);
        assert_true(fabs(share_of_batches(&uniform, row) - DRAWN / (double)ROWS) < 0.01);
    }
    wf_bench_ids_close(&zipf);
    wf_bench_ids_close(&uniform);
}

/* Rows are named as often as the rule's own updates say; a third of them, twice. */
static void flat_loops_do_what_a_ps_does(void **state)
{
    enum { ROWS = 300, DIM = 5, NAMED = 100 };
    static const wf_bench_work push = {"push", true, false}, both = {"push+pull", true, true};
    static const uint32_t threads[] = {1, 3};
    float w[DIM] = {0}, a[DIM], g[DIM], *slots[] = {a};
    uint64_t ids[NAMED];
    wf_opt opt;

    (void)state;
    assert_int_equal(wf_opt_init(&opt, "adagrad", 0, NULL, NULL, NULL), WF_OK);
    for (int i = 0; i < DIM; i++) {
        a[i] = wf_opt_slot_initial(&opt, 0);
        g[i] = 1e-3F;
    }
    wf_opt_apply(&opt, 1, DIM, w, g, slots);
    wf_opt_apply(&opt, 2, DIM, w, g, slots);
    for (uint64_t i = 0; i < NAMED; i++)
        ids[i] = 3 * i;
    for (size_t k = 0; k < WF_COUNT(threads); k++) {
        wf_flat *f = NULL;
        const float *rows;

        assert_int_equal(wf_flat_open(ROWS, DIM, NAMED, threads[k], &f, NULL), WF_OK);
        (void)wf_flat_do(f, &push, ids, NAMED);
        rows = wf_flat_do(f, &both, ids, NAMED);
        for (int i = 0; i < NAMED * DIM; i++)
            assert_true(fabsf(rows[i] - w[i % DIM]) <= 1e-6F * fabsf(w[i % DIM]));
        wf_flat_close(&f);
    }
}

/* As common/compile/place.c cuts a table. */
static void slices_of_tables_are_those_of_jobs(void **state)
{
    static const struct {
        uint64_t rows;
        uint32_t dim, n_ps;
        uint64_t each;
    } want[] = {{1000000, 16, 1, 65536},
                {1000000, 16, 32, 31250},
                {100000000, 16, 1, 1562500},
                {10, 16, 1, 10},
                {2000, 4096, 2, 256}};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(want); i++) {
        wf_bench_case of = {
            .draw = wf_bench_draws, .rows = want[i].rows, .dim = want[i].dim, .n_ps = want[i].n_ps};

        assert_int_equal(wf_bench_slice_rows(&of), want[i].each);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_name_each_row_once_in_rising_order),
        cmocka_unit_test(ids_follow_their_distribution),
        cmocka_unit_test(flat_loops_do_what_a_ps_does),
        cmocka_unit_test(slices_of_tables_are_those_of_jobs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
