/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/control.c - the bodies of control messages: bounded before they are unpacked. */
#include "common/wire/control.h"
#include "common/base/rng.h"
#include "common/wire/control.pb-c.h"
#include "common/wire/grammar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static wf_msg_pool pool;

static wf_msg *message(uint16_t kind, const void *bytes, size_t n)
{
    wf_msg *m = NULL;
    uint8_t *to;

    assert_int_equal(wf_msg_new(&pool, kind, &m, NULL), WF_OK);
    to = wf_msg_control(m, n);
    assert_true(to || !n);
    if (n)
        memcpy(to, bytes, n);
    return m;
}

static wf_status get(uint16_t kind, const ProtobufCMessageDescriptor *type, const void *bytes,
                     size_t n, wf_err *err)
{
    wf_msg *m = message(kind, bytes, n);
    void *body = NULL;
    wf_status rc = wf_control_get(m, type, &body, err);

    assert_int_equal(rc == WF_OK, body != NULL);
    wf_control_free(&body);
    wf_msg_free(&pool, &m);
    wf_msg_pool_close(&pool);
    return rc;
}

/* A view in a set-up, as a master sends it. */
static size_t set_up_bytes(uint8_t **out)
{
    Weft__Setup body = WEFT__SETUP__INIT;
    Weft__View view = WEFT__VIEW__INIT;
    Weft__Member row = WEFT__MEMBER__INIT, *list[] = {&row, &row};
    size_t n;

    row.address = "tcp://127.0.0.1:1";
    row.incarnation = UINT64_MAX;
    view.members = list;
    view.n_members = 2;
    body.job = "mnist";
    body.view = &view;
    n = weft__setup__get_packed_size(&body);
    *out = malloc(n);
    assert_non_null(*out);
    weft__setup__pack(&body, *out);
    return n;
}

static void a_body_goes_there_and_back(void **state)
{
    uint8_t *bytes = NULL;
    size_t n = set_up_bytes(&bytes);

    (void)state;
    assert_int_equal(get(WF_SETUP, &weft__setup__descriptor, bytes, n, NULL), WF_OK);
    free(bytes);
}

/* No crash and no read beyond the end, as the sanitizers watch; some cuts are messages again. */
static void cut_and_flipped_bodies_do_no_harm(void **state)
{
    uint8_t *bytes = NULL;
    size_t n = set_up_bytes(&bytes);

    (void)state;
    for (size_t k = 0; k < n; k++) {
        uint8_t *exact = malloc(k + 1);

        memcpy(exact, bytes, k);
        (void)!get(WF_SETUP, &weft__setup__descriptor, exact, k, NULL);
        free(exact);
    }
    for (size_t bit = 0; bit < 8 * n; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        (void)!get(WF_SETUP, &weft__setup__descriptor, bytes, n, NULL);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (uint64_t seed = 0; seed < 2000; seed++) {
        uint8_t noise[64];

        for (size_t i = 0; i < sizeof noise; i++)
            noise[i] = (uint8_t)wf_rng_u64((wf_rng_key){seed, 9}, i);
        (void)!get(WF_SETUP, &weft__setup__descriptor, noise, sizeof noise, NULL);
    }
    free(bytes);
}

static void a_length_of_2_to_the_40_is_refused(void **state)
{
    static const char bytes[] = "\x0a\x80\x80\x80\x80\x80\x20job";
    wf_err err;

    (void)state;
    assert_int_equal(get(WF_SETUP, &weft__setup__descriptor, bytes, sizeof bytes - 1, &err),
                     WF_PROTO);
    assert_non_null(strstr(err.what, "1099511627776"));
    assert_int_equal(err.status, WF_PROTO);
}

/* Two bytes each become some hundred in memory: the budget ends that. */
static void many_empty_bodies_do_not_take_all_memory(void **state)
{
    const size_t n = 1 << 20;
    uint8_t *bytes = malloc(n);

    (void)state;
    for (size_t i = 0; i < n; i += 2) { /* View.members, empty */
        bytes[i] = 2 << 3 | 2;
        bytes[i + 1] = 0;
    }
    assert_int_equal(get(WF_VIEW, &weft__view__descriptor, bytes, n, NULL), WF_PROTO);
    assert_int_equal(get(WF_VIEW, &weft__view__descriptor, bytes, 2000, NULL), WF_OK);
    free(bytes);
}

static void a_kind_has_its_own_limit(void **state)
{
    Weft__Outcome body = WEFT__OUTCOME__INIT;
    wf_msg *m = message(WF_SETUP_OK, NULL, 0);
    char *what = malloc(8192);
    uint8_t *bytes;
    size_t n;
    wf_err err;

    (void)state;
    memset(what, 'x', 8191);
    what[8191] = 0;
    body.what = what;
    assert_int_equal(wf_control_put(m, &body.base, &err), WF_FULL);
    assert_non_null(strstr(err.what, "setup_ok"));
    n = weft__outcome__get_packed_size(&body);
    bytes = malloc(n);
    weft__outcome__pack(&body, bytes);
    assert_int_equal(get(WF_SETUP_OK, &weft__outcome__descriptor, bytes, n, NULL), WF_PROTO);
    assert_int_equal(get(WF_SETUP, &weft__outcome__descriptor, bytes, n, NULL), WF_OK);
    wf_msg_free(&pool, &m);
    wf_msg_pool_close(&pool);
    free(bytes);
    free(what);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_body_goes_there_and_back),
        cmocka_unit_test(cut_and_flipped_bodies_do_no_harm),
        cmocka_unit_test(a_length_of_2_to_the_40_is_refused),
        cmocka_unit_test(many_empty_bodies_do_not_take_all_memory),
        cmocka_unit_test(a_kind_has_its_own_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
