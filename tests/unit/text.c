/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/text.c - text from files is harmless once it is in a message. */
#include "common/base/text.h"
#include "common/base/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void becomes(const char *in, bool keep_lines, const char *out)
{
    char text[128], again[128];
    size_t n = wf_text_escape(in, keep_lines, text, sizeof text);

    assert_string_equal(text, out);
    assert_int_equal(n, strlen(out));
    assert_int_equal(wf_text_escape(text, keep_lines, again, sizeof again), n);
    assert_string_equal(again, text);
}

static void control_characters_and_broken_utf8_are_shown_as_bytes(void **state)
{
    (void)state;
    becomes("layer.0/weight: 'a' \"b\" \\x", false, "layer.0/weight: 'a' \"b\" \\x");
    becomes("größe 権重 \xf0\x9f\x98\x80", false, "größe 権重 \xf0\x9f\x98\x80");
    becomes("\x1b[2J\x07", false, "\\x1b[2J\\x07");
    becomes("a\nb\rc\td\x7f", false, "a\\x0ab\\x0dc\\x09d\\x7f");
    becomes("a\nb\rc", true, "a\nb\\x0dc");
    becomes("\xc2\x9b\x31m", false, "\\xc2\\x9b1m");            /* C1: the 8-bit form of ESC [ */
    becomes("\x9b\x31m\xff", false, "\\x9b1m\\xff");            /* no UTF-8 */
    becomes("\xc0\x9b\xc3", false, "\\xc0\\x9b\\xc3");          /* overlong; cut short */
    becomes("\xed\xa0\x80\xf5", false, "\\xed\\xa0\\x80\\xf5"); /* a surrogate; beyond Unicode */
    becomes("a\xe2\x80\xae"
            "b",
            false,
            "a\\xe2\\x80\\xae"
            "b"); /* right-to-left override */
}

static void a_short_buffer_cuts_between_characters(void **state)
{
    char text[6];

    (void)state;
    assert_int_equal(wf_text_escape("ab\x1b", false, text, sizeof text), 2);
    assert_string_equal(text, "ab");
    assert_int_equal(wf_text_escape("abcd\xc3\xb6", false, text, sizeof text), 4);
    assert_string_equal(text, "abcd");
    assert_int_equal(wf_text_escape("abcdefg", false, text, sizeof text), 5);
    assert_int_equal(wf_text_escape("a", false, text, 1), 0);
    assert_string_equal(text, "");
}

static void messages_hold_no_control_characters(void **state)
{
    wf_err err = {0};
    wf_status rc = wf_fail(&err, WF_INVALID, "rename \x1b", "\"%s\" is bad", "x\x1b]0;title\x07");

    (void)state;
    assert_string_equal(err.what, "\"x\\x1b]0;title\\x07\" is bad");
    assert_string_equal(err.hint, "rename \\x1b");
    wf_err_wrap(&err, rc, "in %s", "\x1b[1m");
    assert_string_equal(err.what, "in \\x1b[1m: \"x\\x1b]0;title\\x07\" is bad");
    wf_fail_errno(&err, 2, NULL, "cannot open %s", "a\nb");
    assert_string_equal(err.what, "cannot open a\\x0ab: No such file or directory");
}

static void context_cuts_a_message_between_characters(void **state)
{
    char long_text[sizeof((wf_err *)0)->what] = "", safe[sizeof long_text];
    wf_err err = {0};
    wf_status rc;

    (void)state;
    while (strlen(long_text) + 2 < sizeof long_text)
        strcat(long_text, "\u00e9");
    for (size_t n = 1; n <= 2; n++) { /* of the two cuts one falls within a character */
        rc = wf_fail(&err, WF_INVALID, NULL, "%s", long_text);
        wf_err_wrap(&err, rc, "%.*s", (int)n, "in");
        wf_text_escape(err.what, false, safe, sizeof safe);
        assert_string_equal(err.what, safe);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_characters_and_broken_utf8_are_shown_as_bytes),
        cmocka_unit_test(a_short_buffer_cuts_between_characters),
        cmocka_unit_test(messages_hold_no_control_characters),
        cmocka_unit_test(context_cuts_a_message_between_characters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
