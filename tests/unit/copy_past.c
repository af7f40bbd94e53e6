/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/copy_past.c - copies past the caches are copies, wherever they begin and end. */
#include "common/base/copy_past.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROOM = 80 << 10, AROUND = 0xa5 };

static void all_bytes_arrive_and_no_others(void **state)
{
    static const size_t sizes[] = {0, 1, 63, 64, 16383, 16384, 16385, 16447, 65536, 70001};
    uint8_t *from = malloc(ROOM), *to = malloc(ROOM);

    (void)state;
    assert_true(from && to);
    for (size_t i = 0; i < ROOM; i++)
        from[i] = (uint8_t)(i * 31 + i / 251);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (size_t at = 0; at < 130; at += 13) {
            size_t n = sizes[k], source = 130 - at;

            memset(to, AROUND, ROOM);
            wf_copy_past_cache(to + at, from + source, n);
            assert_memory_equal(to + at, from + source, n);
            for (size_t i = 0; i < ROOM; i++)
                if ((i < at || i >= at + n) && to[i] != AROUND)
                    fail_msg("byte %zu is written by %zu at %zu", i, n, at);
        }
    free(from);
    free(to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_bytes_arrive_and_no_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
