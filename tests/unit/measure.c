/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/measure.c - sums by key: adding, merging, and the bytes that a peer may have made up.
 */
#include "common/metrics/measure.h"
#include "common/base/cc.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void add(wf_sums *s, uint64_t key, double value)
{
    wf_err err = {0};

    assert_int_equal(wf_sums_add(s, key, value, &err), WF_OK);
}

static void sums_are_those_of_a_plain_array(void **state)
{
    double want[997] = {0}, all = 0;
    wf_sums s = {0};
    size_t n = 0;

    (void)state;
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t key = i * i % WF_COUNT(want);

        want[key] += (double)(i % 7);
        add(&s, key << 20, (double)(i % 7));
    }
    wf_sums_settle(&s);
    for (size_t k = 0; k < WF_COUNT(want); k++) {
        assert_true(wf_sums_get(&s, (uint64_t)k << 20) == want[k]);
        all += want[k];
    }
    for (size_t i = 0; i < s.n; i++) {
        assert_true(i == 0 || s.at[i - 1].key < s.at[i].key);
        all -= s.at[i].value;
        n++;
    }
    assert_true(all == 0 && n <= WF_COUNT(want));
    assert_true(s.room < 4 * WF_COUNT(want)); /* by keys, not by what was added */
    wf_sums_close(&s);
}

static void few_sums_are_added_in_place(void **state)
{
    wf_sums s = {0};

    (void)state;
    for (int i = 0; i < 100; i++)
        for (uint64_t k = 0; k < 3; k++)
            add(&s, k, 0.1);
    assert_int_equal(s.n, 3);
    assert_int_equal(s.settled, 3);
    wf_sums_close(&s);
}

static void what_is_encoded_is_decoded(void **state)
{
    static const double values[] = {1, 3e9, 0, 0.5, -2};

    (void)state;
    for (size_t n = 0; n <= WF_COUNT(values); n++) {
        wf_sums s = {0}, back = {0};
        wf_bytes bytes = {0};
        wf_err err = {0};

        for (size_t i = n; i-- > 0;)
            add(&s, i * UINT64_C(0x123456789a) + (i == 4 ? UINT64_MAX / 2 : 0), values[i]);
        wf_sums_encode(&s, &bytes);
        assert_false(bytes.failed);
        assert_int_equal(wf_sums_decode(&back, bytes.data, bytes.size, &err), WF_OK);
        wf_sums_settle(&back);
        assert_int_equal(back.n, n);
        for (size_t i = 0; i < n; i++)
            assert_true(back.at[i].key == s.at[i].key && back.at[i].value == s.at[i].value);
        /* Cut anywhere, it is refused, or says less. */
        for (size_t cut = 0; cut < bytes.size; cut++) {
            wf_sums part = {0};

            assert_int_equal(wf_sums_decode(&part, bytes.data, cut, &err), WF_PROTO);
            wf_sums_close(&part);
        }
        wf_bytes_close(&bytes);
        wf_sums_close(&s);
        wf_sums_close(&back);
    }
}

static void made_up_bytes_are_refused(void **state)
{
    static const struct {
        uint8_t bytes[24];
        size_t n;
    } bad[] = {
        {{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, 9}, /* too many */
        {{1, 2, 5, 1, 0, 1}, 6},                                  /* a key twice */
        {{1, 2, 5, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1}, 15}, /* over */
        {{0, 1, 5, 0, 0, 0, 0, 0, 0, 0xf0, 0x7f}, 11},                                  /* inf */
        {{0, 1, 5, 0, 0, 0}, 6},
        {{1, 1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80}, 14},
    };

    (void)state;
    for (size_t i = 0; i < WF_COUNT(bad); i++) {
        wf_sums s = {0};
        wf_err err = {0};

        assert_int_equal(wf_sums_decode(&s, bad[i].bytes, bad[i].n, &err), WF_PROTO);
        wf_sums_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_a_plain_array),
        cmocka_unit_test(few_sums_are_added_in_place),
        cmocka_unit_test(what_is_encoded_is_decoded),
        cmocka_unit_test(made_up_bytes_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
