/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/mean.c - the mean of what several workers push for one step, against sums in double;
 * and the parts that a slice holds for it. */
#include "ps/mean.h"
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

enum { WORKERS = 5, COUNT = 70, ROWS = 20, WIDTH = 3 };

static const uint32_t records[WORKERS] = {8, 0, 32, 5, 8};

static void a_dense_mean_is_weighted_by_records(void **unused)
{
    static float values[WORKERS][COUNT], out[COUNT];
    wf_held_part parts[WORKERS] = {{{0}}};

    (void)unused;
    for (uint32_t i = 0; i < WORKERS; i++) {
        for (uint32_t k = 0; k < COUNT; k++)
            values[i][k] = (float)wf_rng_f64((wf_rng_key){i + 1}, k) - 0.5F;
        parts[i] = (wf_held_part){.part.values = i == 3 ? NULL : values[i], .records = records[i]};
    }
    for (uint32_t begin = 0; begin < COUNT; begin += 32)
        wf_mean_range(parts, WORKERS, 53, begin, WF_MIN(begin + 32, (uint32_t)COUNT), out);
    for (uint32_t k = 0; k < COUNT; k++)
        assert_true(fabs(out[k] - (8.0 * values[0][k] + 32.0 * values[2][k] + 8.0 * values[4][k]) /
                                      53) < 1e-7);
    wf_mean_range(parts, WORKERS, 0, 0, COUNT, out);
    assert_true(fabsf(out[7] - (values[0][7] + values[2][7] + values[4][7])) < 1e-6F);
}

/* Each worker names some rows; those that none names are not in the mean. */
static void rows_of_a_table_are_united(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        uint8_t ids[WORKERS][ROWS * sizeof(uint64_t)];
        float values[WORKERS][ROWS * WIDTH];
        double sums[ROWS][WIDTH] = {{0}};
        bool named[ROWS] = {false};
        wf_held_part parts[WORKERS] = {{{0}}};
        wf_slice_part out;
        uint64_t at = 0;

        for (uint32_t i = 0; i < WORKERS; i++) {
            wf_slice_part *p = &parts[i].part;

            p->rows.ids = ids[i];
            p->values = values[i];
            parts[i].records = 1 + i;
            for (uint64_t r = 0; r < ROWS; r++) {
                if (wf_rng_f64((wf_rng_key){seed, i}, r) < 0.6)
                    continue;
                named[r] = true;
                wf_put_u64(ids[i] + p->rows.n * sizeof(uint64_t), 1000 * r);
                for (uint32_t k = 0; k < WIDTH; k++) {
                    float v = (float)wf_rng_f64((wf_rng_key){seed, 100 + i}, r * WIDTH + k);

                    values[i][p->rows.n * WIDTH + k] = v;
                    sums[r][k] += v * (1.0 + i) / 15;
                }
                p->rows.n++;
            }
        }
        assert_int_equal(wf_mean_rows(parts, WORKERS, 15, WIDTH, &out, NULL), WF_OK);
        for (uint64_t r = 0; r < ROWS; r++) {
            if (!named[r])
                continue;
            assert_true(at < out.rows.n);
            assert_int_equal(wf_row_id(&out.rows, at), 1000 * r);
            for (uint32_t k = 0; k < WIDTH; k++)
                assert_true(fabs(out.values[at * WIDTH + k] - sums[r][k]) < 1e-6);
            at++;
        }
        assert_int_equal(at, out.rows.n);
        assert_int_equal(out.n, at * WIDTH);
        wf_mean_rows_free(&out);
    }
}

static void parts_are_taken_by_clock_in_the_order_of_the_workers(void **unused)
{
    static const struct {
        uint32_t worker, clock;
    } held[] = {{2, 5}, {0, 6}, {1, 5}, {0, 5}, {2, 4}};
    const wf_part none = {.codec = WF_CODEC_NONE};
    wf_held h = {0}, taken = {0};

    (void)unused;
    assert_int_equal(wf_held_least(&h), 0);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(wf_held_add(&h,
                                     &(wf_held_part){.part = {.incarnation = 10 + held[i].worker,
                                                              .step = held[i].clock},
                                                     .worker = held[i].worker,
                                                     .clock = held[i].clock},
                                     NULL, &none, NULL),
                         WF_OK);
    assert_int_equal(wf_held_least(&h), 4);
    assert_non_null(wf_held_find(&h, 12, 4));
    assert_null(wf_held_find(&h, 11, 4));
    assert_int_equal(wf_held_take(&h, 5, &taken, NULL), WF_OK);
    assert_int_equal(taken.n, 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(taken.rows[i].worker, i);
    wf_held_forget(&h, 12);
    assert_int_equal(wf_held_least(&h), 6);
    assert_int_equal(h.n, 1);
    wf_held_close(&h);
    wf_held_close(&taken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dense_mean_is_weighted_by_records),
        cmocka_unit_test(rows_of_a_table_are_united),
        cmocka_unit_test(parts_are_taken_by_clock_in_the_order_of_the_workers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
