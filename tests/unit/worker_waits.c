/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/worker_waits.c - since when a worker says that it waits. */
#include "common/base/clock.h"
#include "worker/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static int64_t since_ms(const wf_worker *w)
{
    return w->wait.since_ns / WF_NS_PER_MS;
}

static void a_wait_lasts_from_its_first_look(void **state)
{
    wf_worker *w = calloc(1, sizeof *w);

    (void)state;
    assert_non_null(w);
    for (int64_t ms = 1000; ms < 5000; ms += 250) {
        wf_waits_look(w, ms * WF_NS_PER_MS);
        assert_int_equal(w->wait.kind, WF_WAIT_JOB);
        assert_int_equal(since_ms(w), 1000);
    }
    free(w);
}

static void time_in_one_long_call_is_no_wait(void **state)
{
    wf_worker *w = calloc(1, sizeof *w);

    (void)state;
    assert_non_null(w);
    wf_waits_look(w, 1000 * WF_NS_PER_MS);
    wf_waits_look(w, 1100 * WF_NS_PER_MS);
    wf_waits_look(w, 9000 * WF_NS_PER_MS); /* back after 7.9 s */
    assert_int_equal(since_ms(w), 9000);
    wf_waits_look(w, 9100 * WF_NS_PER_MS);
    assert_int_equal(since_ms(w), 9000);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_lasts_from_its_first_look),
        cmocka_unit_test(time_in_one_long_call_is_no_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
