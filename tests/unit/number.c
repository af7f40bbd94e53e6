/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/number.c - numbers from text: the doubles of strtod, to the bit, and no others. */
#include "common/data/number.h"
#include "common/base/rng.h"
#include "common/base/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_one(const char *text)
{
    double want = strtod(text, NULL), have;

    if (!wf_number_f64(text, strlen(text), &have) || memcmp(&want, &have, sizeof want) != 0)
        fail_msg("%s is %.17g, not %.17g", text, want, have);
}

static void the_nearest_double_is_found(void **state)
{
    static const char *const texts[] = {"0",
                                        "-0",
                                        "+1",
                                        "1.",
                                        ".5",
                                        "-.5e1",
                                        "1e22",
                                        "1e23",
                                        "9007199254740993",
                                        "1e-22",
                                        "1e-23",
                                        "8.5e-324",
                                        "5e-324",
                                        "2.2250738585072011e-308",
                                        "1.7976931348623157e308",
                                        "0.1",
                                        "0.3",
                                        "123456789012345678901234567890",
                                        "0.00000000000000000000000000000000000000000001",
                                        "000000000000000000000000000000000000000000.5",
                                        "1e0000000000000000000000000000001",
                                        "6.02214076E+23",
                                        "0e999999999999",
                                        "9007199254740991e22",
                                        "9007199254740993e-1"};
    wf_rng_key key = {3, 1};
    char text[64];

    (void)state;
    for (size_t i = 0; i < WF_COUNT(texts); i++)
        check_one(texts[i]);
    for (uint64_t i = 0; i < 200000; i++) {
        uint64_t bits = wf_rng_u64(key, i);
        double value;

        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        snprintf(text, sizeof text, "%.*e", (int)(i % 20), value);
        check_one(text);
        snprintf(text, sizeof text, "%.*f", (int)(i % 8), (double)(int64_t)bits / 1e12);
        check_one(text);
    }
}

static void what_is_no_number_is_none(void **state)
{
    static const char *const texts[] = {"",     "-",        "+",      ".",     "-.", "e5",  "1e",
                                        "1e+",  "1.2.",     "1 2",    " 1",    "1 ", "1,5", "0x10",
                                        "inf",  "nan",      "NaN",    "1e309", "1f", "--1", "1_000",
                                        "1e5.", "infinity", "-1e400", "1d3"};
    double number;
    int64_t whole;

    (void)state;
    for (size_t i = 0; i < WF_COUNT(texts); i++) {
        if (wf_number_f64(texts[i], strlen(texts[i]), &number))
            fail_msg("\"%s\" is %g", texts[i], number);
        if (wf_number_i64(texts[i], strlen(texts[i]), &whole))
            fail_msg("\"%s\" is %" PRId64, texts[i], whole);
    }
    assert_false(wf_number_f64("1\0", 2, &number));
}

static void whole_numbers_fit_or_are_refused(void **state)
{
    static const struct {
        const char *text;
        bool fits;
        int64_t value;
    } rows[] = {
        {"0", true, 0},
        {"+17", true, 17},
        {"-0012", true, -12},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"99999999999999999999999", false, 0},
        {"1.0", false, 0},
        {"1e3", false, 0},
    };

    (void)state;
    for (size_t i = 0; i < WF_COUNT(rows); i++) {
        int64_t value = 0;

        assert_int_equal(wf_number_i64(rows[i].text, strlen(rows[i].text), &value), rows[i].fits);
        assert_true(!rows[i].fits || value == rows[i].value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_double_is_found),
        cmocka_unit_test(what_is_no_number_is_none),
        cmocka_unit_test(whole_numbers_fit_or_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
