/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/stochastic.c - stochastic rounding goes to one of the two neighbours, to each as often
 * as the mean asks for, by the draw alone: neither the length of an array nor where it begins
 * matters. */
#include "common/tensor/stochastic.h"
#include "common/base/cc.h"
#include "common/base/rng.h"
#include "common/tensor/dtype.h"
#include "common/tensor/halves.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { DRAWS = 1 << 14 };

typedef struct half_kind {
    float (*read)(uint16_t h);
    void (*write)(const float *from, size_t n, wf_draw draw, uint32_t first, uint16_t *to);
    uint16_t infinite, none;
} half_kind;

static const half_kind halves[] = {
    {wf_bf16_to_f32, wf_bf16_stochastic, 0x7F80, 0x7FC0},
    {wf_f16_to_f32, wf_f16_stochastic, 0x7C00, 0x7E00},
};

static wf_draw draw_of(uint64_t n)
{
    return wf_draw_of(wf_rng_fold(77, n));
}

/* Every half stays what it is, whatever is drawn. */
static void what_the_type_can_say_stays(void **state)
{
    static float from[1 << 16];
    static uint16_t to[1 << 16];

    (void)state;
    for (size_t k = 0; k < WF_COUNT(halves); k++)
        for (uint64_t round = 0; round < 20; round++) {
            uint32_t n = 0;

            for (uint32_t h = 0; h < WF_COUNT(to); h++)
                from[h] = halves[k].read((uint16_t)((h & 0x7FFF) < halves[k].infinite ? h : 0));
            halves[k].write(from, WF_COUNT(to), draw_of(round), 0, to);
            for (uint32_t h = 0; h < WF_COUNT(to); h++)
                n += to[h] == ((h & 0x7FFF) < halves[k].infinite ? h : 0);
            assert_int_equal(n, WF_COUNT(to));
        }
}

/* How often x goes up from h to h + 1; it goes nowhere else. */
static double share_up(const half_kind *kind, float x, uint16_t h)
{
    static float from[DRAWS];
    static uint16_t to[DRAWS];
    int up = 0;

    for (int i = 0; i < DRAWS; i++)
        from[i] = x;
    kind->write(from, DRAWS, draw_of((uint64_t)h * 3 + 1), 0, to);
    for (int i = 0; i < DRAWS; i++) {
        if (to[i] != h)
            assert_int_equal(to[i], h + 1);
        up += to[i] != h;
    }
    return (double)up / DRAWS;
}

/* From the smallest subnormal to the largest number: a binomial mean has a deviation of
 * sqrt(p (1 - p) / DRAWS), and none of some hundred is 5 of them away. */
static void a_mean_is_what_was_rounded(void **state)
{
    (void)state;
    for (size_t k = 0; k < WF_COUNT(halves); k++)
        for (uint32_t h = 0; h + 1 < halves[k].infinite; h += 211) {
            double low = (double)halves[k].read((uint16_t)h);
            double high = (double)halves[k].read((uint16_t)(h + 1));
            double wanted = wf_rng_f64((wf_rng_key){5, 6}, h);
            float x = (float)(low + (high - low) * wanted);
            double p = ((double)x - low) / (high - low), up;

            if (h == 0 && k == 0)
                continue; /* between 0 and the smallest bfloat16 float32 is subnormal */
            up = share_up(&halves[k], x, (uint16_t)h);
            assert_true(fabs(up - p) <= 5 * sqrt(p * (1 - p) / DRAWS) + 1.0 / DRAWS);
        }
}

static void what_is_beyond_the_range_is_the_largest(void **state)
{
    const float beyond[] = {FLT_MAX, INFINITY, -FLT_MAX, -INFINITY, NAN};

    (void)state;
    for (size_t k = 0; k < WF_COUNT(halves); k++)
        for (uint64_t round = 0; round < 100; round++) {
            uint16_t to[WF_COUNT(beyond)], most = (uint16_t)(halves[k].infinite - 1);

            halves[k].write(beyond, WF_COUNT(beyond), draw_of(round), 0, to);
            assert_int_equal(to[0], most);
            assert_int_equal(to[1], most);
            assert_int_equal(to[2], most | 0x8000);
            assert_int_equal(to[3], most | 0x8000);
            assert_int_equal(to[4] & 0x7FFF, halves[k].none);
        }
}

/* Pieces of any length give the bits of the whole: the vector form and what is left over. */
static void pieces_are_rounded_as_the_whole(void **state)
{
    enum { N = 301 };
    uint16_t whole[N], pieces[N];
    float x[N];

    (void)state;
    for (uint64_t i = 0; i < N; i++)
        x[i] = (float)(wf_rng_f64((wf_rng_key){3, 4}, i) - 0.5) * powf(2, (float)(i % 60) - 30);
    for (size_t k = 0; k < WF_COUNT(halves); k++) {
        halves[k].write(x, N, draw_of(9), 0, whole);
        for (uint32_t each = 1; each < 40; each++) {
            for (uint32_t at = 0; at < N; at += each)
                halves[k].write(x + at, N - at < each ? N - at : each, draw_of(9), at, pieces + at);
            assert_memory_equal(whole, pieces, sizeof whole);
        }
    }
}

/* ---- int8 ---- */

static void a_scale_is_of_the_largest_magnitude(void **state)
{
    float x[40] = {0};

    (void)state;
    assert_true(wf_int8_scale(x, 40) == 0);
    for (size_t i = 0; i < WF_COUNT(x); i++) {
        x[i] = i % 2 ? -(float)(i + 1) : (float)(i + 1);
        assert_true(wf_int8_scale(x, 40) == (float)(i + 1) / 127);
    }
    x[7] = -INFINITY;
    assert_true(wf_int8_scale(x, 40) == FLT_MAX / 127);
    x[30] = NAN;
    assert_true(isnan(wf_int8_scale(x, 40)));
    x[0] = 1e-31F;
    assert_true(wf_int8_scale(x, 1) == 0);
}

static void int8_goes_to_a_neighbour_as_often_as_its_mean_asks(void **state)
{
    static float from[DRAWS];
    static int8_t to[DRAWS];

    (void)state;
    for (int i = 0; i < 200; i++) {
        double q = 254 * wf_rng_f64((wf_rng_key){8, 8}, (uint64_t)i) - 127, low = floor(q), p;
        int up = 0;

        for (int k = 0; k < DRAWS; k++)
            from[k] = (float)(q * 0.03125);
        wf_int8_stochastic(from, DRAWS, draw_of((uint64_t)i), 0.03125F, to);
        p = (double)from[0] * 32 - low;
        for (int k = 0; k < DRAWS; k++) {
            assert_true(to[k] == (int)low || to[k] == (int)low + 1);
            up += to[k] != (int)low;
        }
        assert_true(fabs((double)up / DRAWS - p) <= 5 * sqrt(p * (1 - p) / DRAWS) + 1.0 / DRAWS);
    }
}

static void int8_is_nearest_where_nothing_is_drawn(void **state)
{
    float x[2 * 1270 + 1], back[WF_COUNT(x)];
    int8_t to[WF_COUNT(x)];

    (void)state;
    for (int i = 0; i < (int)WF_COUNT(x); i++)
        x[i] = (float)(i - 1270) * 0.025F; /* a tenth of a step */
    wf_int8_of_f32s(x, WF_COUNT(x), 0.25F, to);
    wf_f32_of_int8s(to, WF_COUNT(x), 0.25F, back);
    for (size_t i = 0; i < WF_COUNT(x); i++) {
        assert_int_equal(to[i], (int)nearbyintf(x[i] / 0.25F));
        assert_true(fabsf(back[i] - x[i]) <= 0.125F);
    }
    wf_int8_of_f32s(x, WF_COUNT(x), 0, to);
    assert_int_equal(to[0], 0);
    wf_int8_stochastic(x, WF_COUNT(x), draw_of(1), NAN, to);
    assert_int_equal(to[0], 0);
    wf_int8_stochastic((const float[]){INFINITY, -1e30F}, 2, draw_of(1), 0.25F, to);
    assert_true(to[0] == 127 && to[1] == -127);
}

/* ---- draws ---- */

/* Updates that are a tenth of half a step: rounding to nearest would lose every one. */
static void small_updates_add_up(void **state)
{
    enum { N = 4096, STEPS = 1000 };
    static uint16_t w[N];
    static float x[N];
    double sum = 0;

    (void)state;
    for (int i = 0; i < N; i++)
        w[i] = wf_f32_to_bf16(1);
    for (uint64_t step = 0; step < STEPS; step++) {
        wf_f32_of_bf16s(w, N, x);
        for (int i = 0; i < N; i++)
            x[i] += 0.0004F; /* a step of bfloat16 is 2^-7 = 0.0078 here */
        wf_bf16_stochastic(x, N, draw_of(step), 0, w);
    }
    wf_f32_of_bf16s(w, N, x);
    for (int i = 0; i < N; i++)
        sum += (double)x[i];
    assert_true(fabs(sum / N - 1.4) < 0.005);
}

/* Elements, rows and updates are drawn for apart: no two of them go up together more often than
 * chance has it. */
static void draws_do_not_go_together(void **state)
{
    enum { N = 1 << 12 };
    static uint16_t to[3][N];
    static float half[N];

    (void)state;
    for (int i = 0; i < N; i++)
        half[i] = 1 + 0x1p-8F; /* the middle of two */
    for (uint64_t round = 0; round < 50; round++) {
        int same[3] = {0};

        wf_bf16_stochastic(half, N, draw_of(round), 0, to[0]);
        wf_bf16_stochastic(half, N, draw_of(round + 1), 0, to[1]);
        wf_bf16_stochastic(half, N, wf_draw_of(wf_rng_fold(78, round)), 0, to[2]);
        for (int i = 0; i < N; i++) {
            same[0] += to[0][i] == to[0][(i + 1) % N];
            same[1] += to[0][i] == to[1][i];
            same[2] += to[0][i] == to[2][i];
        }
        for (int k = 0; k < 3; k++)
            assert_true(abs(same[k] - N / 2) < 5 * 32); /* 5 deviations */
    }
}

/* Several at once are what each is alone, whatever their length. */
static void rows_are_rounded_as_one_by_one(void **state)
{
    enum { MOST = 70, ROWS = 5 };
    static float x[ROWS * MOST];
    static uint16_t together[2][ROWS * MOST], alone[2][ROWS * MOST];
    wf_draw draws[ROWS];

    (void)state;
    for (uint64_t row = 1; row <= MOST; row++) {
        for (uint64_t i = 0; i < ROWS * row; i++)
            x[i] = wf_rng_f32((wf_rng_key){1, row}, i) - 0.5F;
        for (uint64_t r = 0; r < ROWS; r++)
            draws[r] = draw_of(row * ROWS + r);
        wf_bf16_stochastic_rows(x, ROWS, row, draws, together[0]);
        wf_f16_stochastic_rows(x, ROWS, row, draws, together[1]);
        for (uint64_t r = 0; r < ROWS; r++) {
            wf_bf16_stochastic(x + r * row, row, draws[r], 0, alone[0] + r * row);
            wf_f16_stochastic(x + r * row, row, draws[r], 0, alone[1] + r * row);
        }
        for (int k = 0; k < 2; k++)
            assert_memory_equal(together[k], alone[k], ROWS * row * sizeof(uint16_t));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_type_can_say_stays),
        cmocka_unit_test(a_mean_is_what_was_rounded),
        cmocka_unit_test(what_is_beyond_the_range_is_the_largest),
        cmocka_unit_test(pieces_are_rounded_as_the_whole),
        cmocka_unit_test(a_scale_is_of_the_largest_magnitude),
        cmocka_unit_test(int8_goes_to_a_neighbour_as_often_as_its_mean_asks),
        cmocka_unit_test(int8_is_nearest_where_nothing_is_drawn),
        cmocka_unit_test(small_updates_add_up),
        cmocka_unit_test(draws_do_not_go_together),
        cmocka_unit_test(rows_are_rounded_as_one_by_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
