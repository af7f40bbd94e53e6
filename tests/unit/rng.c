/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/rng.c - numbers from a counter: those published for Philox, and the same ones
 * whichever way they are drawn. */
#include "common/base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The known answers of Philox 4x32-10 for a counter and key of zeros, and of ones (Random123,
 * examples/kat_vectors). */
static void blocks_are_those_published(void **state)
{
    static const uint32_t zeros[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    static const uint32_t ones[4] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
    static const uint32_t digits_of_pi[4] = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
    uint32_t out[4];

    (void)state;
    wf_rng_block((wf_rng_key){0, 0}, 0, out);
    assert_memory_equal(out, zeros, sizeof out);
    wf_rng_block((wf_rng_key){UINT64_MAX, UINT64_MAX}, UINT64_MAX, out);
    assert_memory_equal(out, ones, sizeof out);
    wf_rng_block((wf_rng_key){0x299f31d0a4093822u, 0x0370734413198a2eu}, 0x85a308d3243f6a88u, out);
    assert_memory_equal(out, digits_of_pi, sizeof out);
}

static void a_fill_gives_the_single_numbers(void **state)
{
    enum { N = 300 };
    static const uint64_t firsts[] = {0, 1, 2, 3, 4, 63, (uint64_t)1 << 34, UINT64_MAX - 4 * N};
    wf_rng_key key = {12345678901234567u, 9876543210987654321u};
    float out[N];

    (void)state;
    for (size_t f = 0; f < sizeof firsts / sizeof firsts[0]; f++)
        for (size_t n = 0; n <= N; n += 37) {
            wf_rng_fill_f32(key, firsts[f], out, n);
            for (size_t i = 0; i < n; i++)
                assert_true(out[i] == wf_rng_f32(key, firsts[f] + i));
        }
}

/* Pearson's statistic of counts that should be equal. Its mean is the degrees of freedom, its
 * variance twice that; a sound generator is beyond 5 deviations once in a million tests, and these
 * are seeded. */
static void assert_even(const uint64_t counts[], size_t n)
{
    double sum = 0, chi = 0, each, freedom = (double)n - 1;

    for (size_t i = 0; i < n; i++)
        sum += (double)counts[i];
    each = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        chi += ((double)counts[i] - each) * ((double)counts[i] - each) / each;
    if (fabs(chi - freedom) > 5 * sqrt(2 * freedom))
        fail_msg("chi square is %g, of %g degrees of freedom", chi, freedom);
}

enum { DRAWS = 1 << 20, BINS = 256 };

static void numbers_fall_evenly(void **state)
{
    static uint64_t f32[BINS], f64[BINS], low[BINS], below[57], pairs[BINS];
    double last = 0.5;

    (void)state;
    for (uint64_t i = 0; i < DRAWS; i++) {
        wf_rng_key key = {42, i % 3};
        float f = wf_rng_f32(key, i);
        double d = wf_rng_f64(key, i);
        uint64_t k = wf_rng_below(key, i, 57);

        assert_true(f >= 0 && f < 1 && d >= 0 && d < 1 && k < 57);
        f32[(size_t)(f * BINS)]++;
        f64[(size_t)(d * BINS)]++;
        low[wf_rng_u64(key, i) % BINS]++;
        below[k]++;
        pairs[(size_t)(last * 16) * 16 + (size_t)(d * 16)]++; /* neighbours are independent */
        last = d;
    }
    assert_even(f32, BINS);
    assert_even(f64, BINS);
    assert_even(low, BINS);
    assert_even(below, 57);
    assert_even(pairs, BINS);
}

static void mean_and_variance_are_those_of_the_unit_interval(void **state)
{
    static float out[DRAWS];
    double sum = 0, squares = 0;

    (void)state;
    wf_rng_fill_f32((wf_rng_key){1, 2}, 3, out, DRAWS);
    for (size_t i = 0; i < DRAWS; i++) {
        sum += (double)out[i];
        squares += ((double)out[i] - 0.5) * ((double)out[i] - 0.5);
    }
    assert_true(fabs(sum / DRAWS - 0.5) < 5 * sqrt(1.0 / 12 / DRAWS));
    assert_true(fabs(squares / DRAWS - 1.0 / 12) < 5 * sqrt(1.0 / 180 / DRAWS));
}

static void bounds_are_held(void **state)
{
    wf_rng_key key = {9, 9};

    (void)state;
    for (uint64_t i = 0; i < 1000; i++) {
        assert_int_equal(wf_rng_below(key, i, 1), 0);
        assert_true(wf_rng_below(key, i, UINT64_MAX) < UINT64_MAX);
        assert_true(wf_rng_below(key, i, (uint64_t)1 << 63) < (uint64_t)1 << 63);
    }
}

/* One bit of seed, stream, counter or folded value turns half of the bits that come out. */
static void one_bit_changes_half_of_all(void **state)
{
    double turned[4] = {0};

    (void)state;
    for (uint64_t i = 0; i < 64; i++)
        for (uint64_t k = 0; k < 64; k++) {
            uint64_t bit = (uint64_t)1 << i, is = wf_rng_u64((wf_rng_key){k, 7}, k);

            turned[0] += __builtin_popcountll(is ^ wf_rng_u64((wf_rng_key){k ^ bit, 7}, k));
            turned[1] += __builtin_popcountll(is ^ wf_rng_u64((wf_rng_key){k, 7 ^ bit}, k));
            turned[2] += __builtin_popcountll(is ^ wf_rng_u64((wf_rng_key){k, 7}, k ^ bit));
            turned[3] += __builtin_popcountll(wf_rng_fold(3, k) ^ wf_rng_fold(3, k ^ bit));
        }
    for (int i = 0; i < 4; i++)
        assert_true(fabs(turned[i] / (64 * 64) - 32) < 5 * 4 / 64.0);
}

/* The order of folding counts, and names that are alike fold apart. */
static void folds_of_names_and_numbers_differ(void **state)
{
    static const char *const names[] = {"", "a", "b", "ab", "ba", "dropout_1", "dropout_2"};
    enum { N = sizeof names / sizeof names[0] };
    uint64_t folds[2 * N * N];
    size_t n = 0;

    (void)state;
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < N; k++) {
            folds[n++] = wf_rng_fold_str(wf_rng_fold_str(0, names[i]), names[k]);
            folds[n++] = wf_rng_fold(wf_rng_fold(0, i), k);
        }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            assert_true(folds[i] != folds[k]);
    assert_true(wf_random_id() != wf_random_id());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_those_published),
        cmocka_unit_test(numbers_fall_evenly),
        cmocka_unit_test(mean_and_variance_are_those_of_the_unit_interval),
        cmocka_unit_test(bounds_are_held),
        cmocka_unit_test(one_bit_changes_half_of_all),
        cmocka_unit_test(folds_of_names_and_numbers_differ),
        cmocka_unit_test(a_fill_gives_the_single_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
