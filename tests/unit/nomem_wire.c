/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/nomem_wire.c - messages go their way while memory ends, and when it comes back each of
 * them has arrived once or its sender knows. */
#include "common/log/log.h"
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"
#include "common/wire/grammar.h"
#include "tests/unit/nomem.h"

/* A set-up with two members, into a message and out of it. */
static wf_status pack_and_unpack(void *unused, wf_err *err)
{
    Weft__Setup body = WEFT__SETUP__INIT, *again = NULL;
    Weft__View view = WEFT__VIEW__INIT;
    Weft__Member row = WEFT__MEMBER__INIT, *list[] = {&row, &row};
    wf_msg_pool pool = {0};
    wf_msg *m = NULL, *copy = NULL;
    wf_status rc = wf_msg_new(&pool, WF_SETUP, &m, err);

    (void)unused;
    row.address = (char *)"tcp://127.0.0.1:1";
    view.members = list;
    view.n_members = 2;
    body.job = (char *)"mnist";
    body.view = &view;
    if (rc == WF_OK)
        rc = wf_control_put(m, &body.base, err);
    if (rc == WF_OK)
        rc = wf_msg_copy(&pool, m, &copy, err);
    if (rc == WF_OK)
        rc = wf_control_get(copy, &weft__setup__descriptor, &again, err);
    if (rc == WF_OK && (strcmp(again->job, "mnist") != 0 || again->view->n_members != 2 ||
                        strcmp(again->view->members[1]->address, row.address) != 0))
        rc = wrong(err, "another set-up");
    wf_control_free(&again);
    wf_msg_free(&pool, &copy);
    wf_msg_free(&pool, &m);
    wf_msg_pool_close(&pool);
    return rc;
}

static void bodies_are_packed_and_unpacked(void **state)
{
    (void)state;
    assert_survives(pack_and_unpack, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_are_packed_and_unpacked),
    };

    wf_log_init("", WF_ERROR); /* what is dropped is no news here */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
