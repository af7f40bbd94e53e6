/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/nearest.c - what is said about an unknown word. */
#include "common/base/nearest.h"
#include "common/base/cc.h"
#include "common/base/synonyms.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *const words[] = {"async",
                                    "bsp",
                                    "learning_rate",
                                    "weight_decay",
                                    "adam",
                                    "categorical_crossentropy",
                                    "sparse_categorical_crossentropy"};

static void hint_is(const char *given, const char *wanted)
{
    char hint[WF_NEAREST_HINT];

    assert_string_equal(wf_nearest_hint(given, words, WF_COUNT(words), NULL, hint), wanted);
}

static void misspelt_words_are_found(void **state)
{
    (void)state;
    hint_is("adm", "did you mean \"adam\"?");
    hint_is("Learning_rate", "did you mean \"learning_rate\"?");
    assert_null(wf_nearest("zzz", words, WF_COUNT(words)));
}

static void words_from_elsewhere_are_found_before_those_that_look_alike(void **state)
{
    (void)state;
    hint_is("lr", "did you mean \"learning_rate\"?");
    hint_is("sync", "did you mean \"bsp\"?"); /* one letter from its opposite */
    hint_is("crossentropy", "did you mean \"sparse_categorical_crossentropy\" or "
                            "\"categorical_crossentropy\"?");
    assert_null(wf_nearest("gpu", words, WF_COUNT(words))); /* its meaning is not among them */
}

/* As many as fit, and the number of the others. */
static void a_list_that_is_cut_says_so(void **state)
{
    enum { MANY = 60 };
    char names[MANY][12], hint[WF_NEAREST_HINT];
    const char *list[MANY];
    unsigned more;
    size_t shown = 1;

    (void)state;
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "word-%02d", i);
        list[i] = names[i];
    }
    wf_nearest_hint("zzz", list, 3, "weft help x", hint);
    assert_string_equal(hint, "known: word-00, word-01, word-02");
    wf_nearest_hint("zzz", list, MANY, "weft help x", hint);
    for (const char *p = hint; (p = strchr(p, ',')); p++)
        shown++;
    assert_int_equal(sscanf(strstr(hint, " and "), " and %u more; see weft help x", &more), 1);
    assert_int_equal(shown + more, MANY);
    assert_true(shown > 20);
    assert_true(strlen(hint) < WF_NEAREST_HINT);
    assert_non_null(strstr(hint, "see weft help x"));
    wf_nearest_hint("zzz", list, MANY, NULL, hint);
    assert_string_equal(hint + strlen(hint) - 5, " more");
    for (size_t n = 1; n < MANY; n++) { /* no length is cut in silence */
        wf_nearest_hint("zzz", list, n, "weft help x", hint);
        assert_true(strstr(hint, " more; see weft help x") || strstr(hint, names[n - 1]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misspelt_words_are_found),
        cmocka_unit_test(words_from_elsewhere_are_found_before_those_that_look_alike),
        cmocka_unit_test(a_list_that_is_cut_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
