/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/worker_waits.c - since when a worker says that it waits, and for whom. */
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

/* All hold for a cut, and one ps has not taken its copies: the wait is for that ps. */
static void a_chief_waits_for_the_ps_that_has_no_copies(void **state)
{
    wf_worker *w = calloc(1, sizeof *w);
    Weft__Start start = WEFT__START__INIT;
    struct wf_exchange_shard shards[] = {{.writer = {WF_ROLE_PS, 0}, .copied = true},
                                         {.writer = {WF_ROLE_PS, 1}}};
    wf_exchange x = {.saving = {.cut = 3, .n = 2, .shards = shards}};
    wf_waiting told;

    (void)state;
    assert_non_null(w);
    w->start = &start;
    w->exchange = &x;
    w->state = WF_WORKER_WAITING;
    w->hold = WF_HOLD_REPORTED;
    w->cut = 3;
    w->chief.state = WF_CHIEF_SAVING;
    wf_waits_look(w, 1000 * WF_NS_PER_MS);
    wf_worker_waiting(w, &told);
    assert_int_equal(told.whom.role, WF_ROLE_PS);
    assert_int_equal(told.whom.index, 1);
    assert_int_equal(told.since_ns, 1000 * WF_NS_PER_MS);
    w->chief.copied_ns = 1;
    wf_waits_look(w, 1100 * WF_NS_PER_MS);
    wf_worker_waiting(w, &told);
    assert_int_equal(told.whom.role, WF_ROLE_MASTER);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_lasts_from_its_first_look),
        cmocka_unit_test(time_in_one_long_call_is_no_wait),
        cmocka_unit_test(a_chief_waits_for_the_ps_that_has_no_copies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
