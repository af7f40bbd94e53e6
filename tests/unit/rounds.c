/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/rounds.c - listings and the time go in, the files of rounds come out. */
#include "master/job/rounds.h"
#include "common/base/size.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SETTLE = 10 };

#define SEE(r, at, ...)                                                                            \
    see((r), (at), (const wf_listed[]){__VA_ARGS__}, WF_COUNT(((const wf_listed[]){__VA_ARGS__})))

static void see(wf_rounds *r, int64_t at, const wf_listed list[], size_t n)
{
    wf_err err;

    assert_int_equal(wf_rounds_see(r, list, n, at, at, &err), WF_OK);
}

/* "a b" for a round of two files; "" when there is none. */
static const char *take(wf_rounds *r)
{
    static char text[256];
    bool any = false;
    wf_err err;

    text[0] = 0;
    assert_int_equal(wf_rounds_take(r, r->round + 1, SETTLE, &any, &err), WF_OK);
    for (size_t i = 0; any && i < r->n_files; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
                 r->files[i].path);
    return text;
}

static void a_round_has_the_files_that_stay_as_they_are(void **state)
{
    wf_rounds r = {0};

    (void)state;
    assert_string_equal(take(&r), "");
    SEE(&r, 1, {"a", 5, 1}, {"b", 6, 1}, {"c", 7, 1});
    assert_string_equal(take(&r), "");
    SEE(&r, 8, {"a", 5, 1}, {"b", 9, 1}, {"c", 7, 2}); /* b grows, c is written anew */
    SEE(&r, 11, {"a", 5, 1}, {"b", 9, 1}, {"c", 7, 2}, {"d", 1, 3});
    assert_string_equal(take(&r), "a");
    assert_int_equal(r.files[0].bytes, 5);
    assert_int_equal(r.n_waiting, 3);
    SEE(&r, 18, {"a", 5, 1}, {"b", 9, 1}, {"c", 7, 2}, {"d", 1, 3});
    assert_string_equal(take(&r), "b c");
    SEE(&r, 21, {"a", 5, 1}, {"b", 9, 1}, {"c", 7, 2}, {"d", 1, 3});
    assert_string_equal(take(&r), "d");
    assert_int_equal(r.round, 3);
    assert_int_equal(r.n_taken, 4);
    wf_rounds_close(&r);
}

/* Whatever becomes of a file that was taken: its name is not new again. */
static void no_file_is_in_two_rounds(void **state)
{
    wf_rounds r = {0};

    (void)state;
    SEE(&r, 1, {"a", 5, 1});
    SEE(&r, 20, {"a", 5, 1});
    assert_string_equal(take(&r), "a");
    SEE(&r, 30, {"a", 6, 2}, {"b", 1, 1});
    SEE(&r, 50, {"a", 6, 2}, {"b", 1, 1});
    assert_string_equal(take(&r), "b"); /* a is in the round before */
    SEE(&r, 60, {"c", 1, 1});
    SEE(&r, 70, {"a", 6, 2}, {"b", 1, 1}, {"c", 1, 1}); /* and b in the last one */
    SEE(&r, 90, {"a", 6, 2}, {"b", 1, 1}, {"c", 1, 1});
    assert_string_equal(take(&r), "c");
    wf_rounds_close(&r);
}

static void what_goes_or_is_empty_is_not_taken(void **state)
{
    wf_rounds r = {0};

    (void)state;
    SEE(&r, 1, {"a", 5, 1}, {"b", 0, 1});
    SEE(&r, 20, {"b", 0, 1});
    assert_string_equal(take(&r), "");
    assert_int_equal(r.n_waiting, 0);
    SEE(&r, 21, {"a", 5, 1}, {"b", 0, 1}); /* it is back: as a new one */
    SEE(&r, 25, {"a", 5, 1}, {"b", 0, 1});
    assert_string_equal(take(&r), "");
    SEE(&r, 31, {"a", 5, 1}, {"b", 0, 1});
    assert_string_equal(take(&r), "a");
    wf_rounds_close(&r);
}

/* A listing that took long: the file was first seen at its end, and again at its beginning. */
static void the_time_of_a_listing_is_not_known_better_than_it_is(void **state)
{
    const wf_listed list[] = {{"a", 5, 1}};
    wf_rounds r = {0};
    wf_err err;

    (void)state;
    assert_int_equal(wf_rounds_see(&r, list, 1, 0, 8, &err), WF_OK);
    assert_int_equal(wf_rounds_see(&r, list, 1, 12, 30, &err), WF_OK);
    assert_string_equal(take(&r), "");
    assert_int_equal(wf_rounds_see(&r, list, 1, 18, 40, &err), WF_OK);
    assert_string_equal(take(&r), "a");
    wf_rounds_close(&r);
}

static void many_files_are_several_rounds(void **state)
{
    enum { N = WF_ROUND_FILES + 3 };
    static char names[N][16];
    static wf_listed list[N];
    wf_rounds r = {0};
    bool any;
    wf_err err;

    (void)state;
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "f%05d", i);
        list[i] = (wf_listed){names[i], 1, 1};
    }
    see(&r, 1, list, N);
    see(&r, 20, list, N);
    assert_int_equal(wf_rounds_take(&r, 1, SETTLE, &any, &err), WF_OK);
    assert_int_equal(r.n_files, WF_ROUND_FILES);
    assert_string_equal(r.files[WF_ROUND_FILES - 1].path, names[WF_ROUND_FILES - 1]);
    see(&r, 21, list, N);
    assert_int_equal(wf_rounds_take(&r, 2, SETTLE, &any, &err), WF_OK);
    assert_int_equal(r.n_files, 3);
    wf_rounds_close(&r);
}

static void account_is_kept_of_so_many_files(void **state)
{
    static uint64_t earlier[WF_ROUNDS_EARLIER + 1];
    wf_rounds r = {0};
    bool any;
    wf_err err;

    (void)state;
    for (size_t i = 0; i < WF_COUNT(earlier); i++)
        earlier[i] = 1000000 - i;
    assert_int_equal(wf_rounds_set(&r, 7, NULL, 0, earlier, WF_COUNT(earlier), &err), WF_INVALID);
    assert_int_equal(wf_rounds_set(&r, 7, NULL, 0, earlier, WF_ROUNDS_EARLIER, &err), WF_OK);
    assert_true(r.earlier[0] < r.earlier[1]);
    SEE(&r, 1, {"a", 5, 1});
    SEE(&r, 20, {"a", 5, 1}, {"b", 5, 1});
    assert_string_equal(take(&r), "a");
    SEE(&r, 40, {"b", 5, 1});
    assert_int_equal(wf_rounds_take(&r, 9, SETTLE, &any, &err), WF_FULL);
    assert_string_equal(r.files[0].path, "a");
    wf_rounds_close(&r);
}

/* What the journal has of two rounds, and what a checkpoint has of them. */
static void rounds_come_back_from_messages(void **state)
{
    wf_rounds r = {0}, again = {0}, whole = {0};
    wf_round_message m;
    wf_err err;

    (void)state;
    SEE(&r, 1, {"a", 5, 1});
    SEE(&r, 20, {"a", 5, 1}, {"b", 6, 1});
    take(&r);
    assert_int_equal(wf_round_message_make(&r, &m, &err), WF_OK);
    assert_int_equal(wf_rounds_replay(&again, &m.body, &err), WF_OK);
    wf_round_message_free(&m);
    SEE(&r, 40, {"b", 6, 1});
    take(&r);
    assert_int_equal(wf_round_message_make(&r, &m, &err), WF_OK);
    assert_int_equal(wf_rounds_replay(&again, &m.body, &err), WF_OK);
    assert_int_equal(wf_rounds_set(&whole, m.body.round, m.body.files, m.body.n_files, r.earlier,
                                   r.n_earlier, &err),
                     WF_OK);
    wf_round_message_free(&m);
    for (int i = 0; i < 2; i++) {
        wf_rounds *it = i ? &again : &whole;

        assert_int_equal(it->round, 2);
        assert_string_equal(it->files[0].path, "b");
        assert_int_equal(it->files[0].bytes, 6);
        SEE(it, 1, {"a", 5, 1}, {"b", 6, 1}, {"c", 7, 1});
        SEE(it, 20, {"a", 5, 1}, {"b", 6, 1}, {"c", 7, 1});
        assert_string_equal(take(it), "c");
    }
    wf_rounds_close(&r);
    wf_rounds_close(&again);
    wf_rounds_close(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_round_has_the_files_that_stay_as_they_are),
        cmocka_unit_test(no_file_is_in_two_rounds),
        cmocka_unit_test(what_goes_or_is_empty_is_not_taken),
        cmocka_unit_test(the_time_of_a_listing_is_not_known_better_than_it_is),
        cmocka_unit_test(many_files_are_several_rounds),
        cmocka_unit_test(account_is_kept_of_so_many_files),
        cmocka_unit_test(rounds_come_back_from_messages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
