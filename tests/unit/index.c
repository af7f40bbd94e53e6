/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/index.c - the index beside a plain array, through many additions and removals. */
#include "common/base/index.h"
#include "common/base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { KEYS = 200, CHANGES = 20000 };

static void it_holds_what_was_put_and_not_removed(void **state)
{
    int values[KEYS], *held[KEYS] = {NULL};
    wf_rng_key random = {.seed = 1};
    wf_index x = {0};

    (void)state;
    assert_null(wf_index_get(&x, 0));
    wf_index_remove(&x, 0);
    for (int i = 0; i < CHANGES; i++) {
        uint64_t key = wf_rng_below(random, 2 * (uint64_t)i, KEYS);
        uint64_t value = wf_rng_below(random, 2 * (uint64_t)i + 1, KEYS);
        size_t n = 0;

        held[key] = i % 2000 < 1000 || value % 4 == 0 ? &values[value] : NULL;
        if (held[key])
            assert_int_equal(wf_index_put(&x, key, held[key], NULL), WF_OK);
        else
            wf_index_remove(&x, key);
        for (uint64_t k = 0; k < KEYS; k++) {
            assert_ptr_equal(wf_index_get(&x, k), held[k]);
            n += held[k] != NULL;
        }
        assert_int_equal(x.n, n);
    }
    wf_index_close(&x);
    assert_null(wf_index_get(&x, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_holds_what_was_put_and_not_removed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
