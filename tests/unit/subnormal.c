/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/subnormal.c - flushing reaches the threads that are started after it, and no decayed
 * mean stays between zero and the least normal number. */
#include "common/base/subnormal.h"
#include "common/kernels/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { N = 4 };

static void decay(void *arg, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        volatile float mean = 1;

        for (int step = 0; step < 2000; step++)
            mean = mean * 0.9F;
        ((float *)arg)[i] = mean;
    }
}

static void a_mean_decays_to_zero_on_every_thread(void **state)
{
    float means[N];
    wf_pool *p = NULL;
    wf_err err;

    (void)state;
    wf_flush_subnormals();
    assert_int_equal(wf_pool_new(N, &p, &err), WF_OK);
    wf_pool_for(p, N, 1, decay, means);
    wf_pool_free(&p);
    for (int i = 0; i < N; i++)
        assert_true(means[i] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_mean_decays_to_zero_on_every_thread)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
