/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/rng.c - numbers from a counter: those published for Philox, and the same ones
 * whichever way they are drawn. */
#include "common/base/rng.h"

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
    uint32_t out[4];

    (void)state;
    wf_rng_block((wf_rng_key){0, 0}, 0, out);
    assert_memory_equal(out, zeros, sizeof out);
    wf_rng_block((wf_rng_key){UINT64_MAX, UINT64_MAX}, UINT64_MAX, out);
    assert_memory_equal(out, ones, sizeof out);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_those_published),
        cmocka_unit_test(a_fill_gives_the_single_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
