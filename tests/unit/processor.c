/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/processor.c - which processor a task stays on. */
#include "cmd/processor.h"
#include "common/base/bytes.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Where task `index` stays in a cluster of these tasks on n processors. */
static int stays(uint32_t n_ps, uint32_t n_workers, const char *of_first_worker, wf_role role,
                 uint32_t index, uint32_t n)
{
    wf_bytes text = {0};
    wf_cluster_conf *c = NULL;
    wf_err err;
    int at;

    wf_bytes_puts(&text, "security: none\nmaster: {address: tcp://127.0.0.1:7700}\n");
    if (n_ps)
        wf_bytes_puts(&text, "ps:\n");
    for (uint32_t i = 0; i < n_ps; i++)
        wf_bytes_printf(&text, "  - {address: tcp://localhost:%" PRIu32 "}\n", 7710 + i);
    wf_bytes_puts(&text, "workers:\n");
    for (uint32_t i = 0; i < n_workers; i++)
        wf_bytes_printf(&text, "  - {%s}\n", i == 0 ? of_first_worker : "address: ipc://run/w");
    assert_int_equal(wf_bytes_check(&text, &err), WF_OK);
    assert_int_equal(
        wf_cluster_parse((const char *)text.data, text.size, "/x/cluster.yaml", &c, &err), WF_OK);
    at = wf_processor_of(c, (wf_task){role, index}, n);
    wf_cluster_free(&c);
    wf_bytes_close(&text);
    return at;
}

static const char here[] = "address: tcp://127.0.0.1:7720";

static void tasks_that_can_be_dealt_stay(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(stays(2, 2, here, WF_ROLE_PS, i, 2), i);
        assert_int_equal(stays(2, 2, here, WF_ROLE_WORKER, i, 2), i);
    }
    assert_int_equal(stays(4, 2, here, WF_ROLE_PS, 3, 2), 1);
    assert_int_equal(stays(0, 2, here, WF_ROLE_WORKER, 1, 2), 1);
}

static void all_others_do_not(void **state)
{
    (void)state;
    assert_int_equal(stays(1, 1, here, WF_ROLE_WORKER, 0, 2), -1); /* one would have the ps */
    assert_int_equal(stays(2, 2, here, WF_ROLE_WORKER, 0, 4), -1);
    assert_int_equal(stays(2, 2, here, WF_ROLE_WORKER, 0, 1), -1); /* no choice */
    assert_int_equal(stays(3, 2, here, WF_ROLE_WORKER, 0, 2), -1); /* one would have two ps */
    assert_int_equal(stays(2, 1, here, WF_ROLE_PS, 0, 2), -1);
    assert_int_equal(stays(2, 2, "address: tcp://127.0.0.1:7720, threads: 2", WF_ROLE_WORKER, 1, 2),
                     -1);
    assert_int_equal(stays(2, 2, "address: tcp://10.0.0.5:7720", WF_ROLE_WORKER, 1, 2), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_that_can_be_dealt_stay),
        cmocka_unit_test(all_others_do_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
