/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/manifest.c - what map steps have learnt, in a manifest: the very numbers and words
 * come back, what is out of bounds is neither written nor read, and a manifest without any is read.
 */
#include "common/ckpt/manifest.h"
#include "common/ckpt/json.h"
#include "common/ckpt/sum.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const double numbers[] = {0.1, -1e300, 3, 7.0 / 3};

static wf_learnt sound(void)
{
    return (wf_learnt){.field = "x",
                       .step = 2,
                       .type = "standardise",
                       .dtype = WF_F32,
                       .rank = 1,
                       .dims = {2},
                       .numbers = numbers,
                       .n_numbers = 4};
}

static wf_status encode(wf_learnt *l, size_t n, wf_bytes *out, wf_err *err)
{
    const wf_manifest m = {.job = "j",
                           .digest = "0123456789abcdef",
                           .weft = "0.1.0",
                           .rule = "sgd",
                           .learnt = l,
                           .n_learnt = n};

    return wf_manifest_encode(&m, out, err);
}

static wf_status decode(const char *text, wf_arena *a, wf_manifest *m, wf_err *err)
{
    return wf_manifest_decode(text, strlen(text), "manifest.json", a, m, err);
}

/* The text with one part of it replaced, under a checksum that is right; until the next call. */
static const char *changed(const char *text, const char *from, const char *to)
{
    static char out[16384];
    const char *at = strstr(text, from), *end = strstr(text, ",\n \"sum\"");
    char sum[WF_SUM_TEXT];
    int n;

    assert_true(at && end);
    n = snprintf(out, sizeof out, "%.*s%s%.*s", (int)(at - text), text, to,
                 (int)(end - at - (long)strlen(from)), at + strlen(from));
    assert_in_range(n, 1, sizeof out - 100);
    wf_sum_of(out, (size_t)n, sum);
    snprintf(out + n, sizeof out - (size_t)n, ",\n \"sum\": \"%s\"\n}\n", sum);
    return out;
}

static void the_very_numbers_come_back(void **state)
{
    wf_learnt l[] = {sound(), sound()};
    wf_arena *a = wf_arena_new(0);
    wf_bytes text = {0};
    wf_manifest m;

    (void)state;
    l[1].field = "ü";
    l[1].rank = 0;
    l[1].n_numbers = 0;
    assert_int_equal(encode(l, 2, &text, NULL), WF_OK);
    assert_int_equal(decode(wf_bytes_str(&text), a, &m, NULL), WF_OK);
    assert_int_equal(m.n_learnt, 2);
    assert_string_equal(m.learnt[0].field, "x");
    assert_string_equal(m.learnt[0].type, "standardise");
    assert_int_equal(m.learnt[0].step, 2);
    assert_int_equal(m.learnt[0].dtype, WF_F32);
    assert_int_equal(m.learnt[0].dims[0], 2);
    assert_int_equal(m.learnt[0].n_numbers, 4);
    assert_memory_equal(m.learnt[0].numbers, numbers, sizeof numbers);
    assert_string_equal(m.learnt[1].field, "ü");
    assert_int_equal(m.learnt[1].n_numbers, 0);
    wf_bytes_close(&text);
    assert_int_equal(encode(NULL, 0, &text, NULL), WF_OK);
    assert_null(strstr(wf_bytes_str(&text), "learnt"));
    assert_int_equal(decode(wf_bytes_str(&text), a, &m, NULL), WF_OK);
    assert_int_equal(m.n_learnt, 0);
    wf_bytes_close(&text);
    wf_arena_free(&a);
}

static const char *const words[] = {"say \"x\"\n", "\xc3\xbc", "x\\"};

static wf_learnt vocabulary(void)
{
    return (wf_learnt){
        .field = "x", .type = "vocabulary", .dtype = WF_I64, .words = words, .n_words = 3};
}

static void the_very_words_come_back(void **state)
{
    wf_learnt l[] = {vocabulary(), sound()};
    wf_arena *a = wf_arena_new(0);
    wf_bytes text = {0};
    wf_manifest m;

    (void)state;
    assert_int_equal(encode(l, 2, &text, NULL), WF_OK);
    assert_int_equal(decode(wf_bytes_str(&text), a, &m, NULL), WF_OK);
    assert_int_equal(m.n_learnt, 2);
    assert_int_equal(m.learnt[0].n_words, 3);
    for (size_t i = 0; i < WF_COUNT(words); i++)
        assert_string_equal(m.learnt[0].words[i], words[i]);
    assert_int_equal(m.learnt[1].n_words, 0); /* as in a manifest without words */
    wf_bytes_close(&text);
    wf_arena_free(&a);
}

static void words_that_are_out_of_bounds_are_told(void **state)
{
    static const char *const changes[] = {"\"\", ", "7, ", "null, "};
    static const char *const empty[] = {""}, *const broken[] = {"\xff"};
    char wide[WF_LEARNT_WORD + 2];
    const char *const long_one[] = {wide};
    const char **many = calloc(WF_LEARNT_WORDS + 1, sizeof *many);
    const struct {
        const char *const *words;
        size_t n;
        const char *says;
    } rows[] = {{empty, 1, "out of bounds"},
                {long_one, 1, "out of bounds"},
                {many, WF_LEARNT_WORDS + 1, "out of bounds"},
                {many, WF_LEARNT_WORDS, "out of bounds"}, /* of bytes */
                {broken, 1, "is not UTF-8"}};
    wf_arena *a = wf_arena_new(0);
    wf_learnt l = vocabulary();
    wf_bytes text = {0};
    wf_manifest m;
    wf_err err = {0};

    (void)state;
    assert_non_null(many);
    memset(wide, 'w', sizeof wide);
    wide[WF_LEARNT_WORD + 1] = 0;
    for (size_t i = 0; i <= WF_LEARNT_WORDS; i++)
        many[i] = wide + WF_LEARNT_WORD + 1 - 64;
    assert_int_equal(encode(&l, 1, &text, NULL), WF_OK);
    for (size_t i = 0; i < WF_COUNT(changes); i++) {
        char to[64];

        snprintf(to, sizeof to, "\"words\": [%s", changes[i]);
        assert_int_equal(decode(changed(wf_bytes_str(&text), "\"words\": [", to), a, &m, &err),
                         WF_CORRUPT);
        assert_non_null(strstr(err.what, "of \"x\" has learnt is out of bounds"));
    }
    for (size_t i = 0; i < WF_COUNT(rows); i++) {
        l.words = rows[i].words;
        l.n_words = rows[i].n;
        err = (wf_err){0};
        assert_int_equal(encode(&l, 1, &text, &err), WF_INVALID);
        assert_non_null(strstr(err.what, rows[i].says));
    }
    free(many);
    wf_bytes_close(&text);
    wf_arena_free(&a);
}

static void what_is_out_of_bounds_is_not_written(void **state)
{
    static double many[WF_LEARNT_NUMBERS + 1];
    const double bad[] = {1, (double)NAN};
    wf_learnt l[7];
    wf_bytes text = {0};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(l); i++)
        l[i] = sound();
    l[0].numbers = bad;
    l[0].n_numbers = 2;
    l[1].numbers = many;
    l[1].n_numbers = WF_COUNT(many);
    l[2].step = WF_DATA_MAX_STEPS;
    l[3].dtype = WF_NONE;
    l[4].rank = WF_MAX_RANK;
    l[5].dims[0] = 0;
    l[6].dims[0] = -1;
    for (size_t i = 0; i < WF_COUNT(l); i++) {
        wf_err err = {0};

        assert_int_equal(encode(&l[i], 1, &text, &err), WF_INVALID);
        assert_non_null(strstr(err.what, "of \"x\" has learnt is out of bounds"));
    }
    wf_bytes_close(&text);
}

static void what_is_out_of_bounds_is_not_read(void **state)
{
    static const char *const changes[][2] = {
        {"\"step\": 2", "\"step\": 8"},
        {"\"step\": 2", "\"step\": -1"},
        {"\"step\": 2", "\"step\": \"2\""},
        {"\"field\": \"x\"", "\"field\": 7"},
        {"\"float32\"", "\"float31\""},
        {"\"numbers\": [", "\"numbers\": [\"1\", "},
        {"\"numbers\": [", "\"numbers\": [null, "},
        {"\"shape\": [", "\"shape\": [0, "},
        {"\"shape\": [", "\"shape\": [1,1,1,1,1,1,1,1, "},
        {"\"learnt\": [", "\"learnt\": [[], "},
    };
    wf_learnt l = sound();
    wf_arena *a = wf_arena_new(0);
    wf_bytes text = {0};
    wf_manifest m;

    (void)state;
    assert_int_equal(encode(&l, 1, &text, NULL), WF_OK);
    for (size_t i = 0; i < WF_COUNT(changes); i++) {
        const char *other = changed(wf_bytes_str(&text), changes[i][0], changes[i][1]);
        wf_err err = {0};
        wf_status rc = decode(other, a, &m, &err);

        if (rc != WF_CORRUPT || !strstr(err.what, "learnt"))
            fail_msg("%s: status %d: %s", changes[i][1], rc, err.what);
    }
    wf_bytes_close(&text);
    wf_arena_free(&a);
}

static void the_files_of_rounds_come_back(void **state)
{
    uint64_t earlier[] = {1, 0xfedcba9876543210, UINT64_MAX};
    char deep[3000];
    struct wf_ckpt_round_file files[] = {{deep, 12}, {"/in/\xc3\xa9 b.csv", 1}};
    wf_ckpt_rounds rounds = {.files = files,
                             .n_files = 2,
                             .earlier = earlier,
                             .n_earlier = 3,
                             .steps_before = 7,
                             .records_before = 99,
                             .digest = 0x8000000000000001};
    wf_manifest m = {.job = "j",
                     .digest = "0123456789abcdef",
                     .weft = "0.1.0",
                     .rule = "sgd",
                     .ledger = {.epoch = 3, .rounds = &rounds}};
    wf_arena *a = wf_arena_new(0);
    wf_bytes text = {0};
    wf_manifest back = {0};
    const wf_ckpt_rounds *r;
    wf_err err;

    (void)state;
    memset(deep, 'd', sizeof deep - 1);
    deep[sizeof deep - 1] = 0;
    assert_int_equal(wf_manifest_encode(&m, &text, &err), WF_OK);
    assert_int_equal(decode(wf_bytes_str(&text), a, &back, &err), WF_OK);
    r = back.ledger.rounds;
    assert_non_null(r);
    assert_int_equal(r->n_files, 2);
    assert_string_equal(r->files[0].path, deep);
    assert_string_equal(r->files[1].path, files[1].path);
    assert_int_equal(r->files[0].bytes, 12);
    assert_int_equal(r->n_earlier, 3);
    assert_memory_equal(r->earlier, earlier, sizeof earlier);
    assert_true(r->steps_before == 7 && r->records_before == 99 && r->digest == rounds.digest);
    assert_int_equal(
        decode(changed(wf_bytes_str(&text), "fedcba9876543210", "fedcba987654321"), a, &back, &err),
        WF_CORRUPT);
    assert_int_equal(
        decode(changed(wf_bytes_str(&text), "\"bytes\": 12", "\"bytes\": -12"), a, &back, &err),
        WF_CORRUPT);
    rounds.n_files = rounds.n_earlier = 0; /* of all that there can be: none */
    m.ledger.rounds = NULL;
    wf_bytes_close(&text);
    assert_int_equal(wf_manifest_encode(&m, &text, &err), WF_OK);
    assert_int_equal(decode(wf_bytes_str(&text), a, &back, &err), WF_OK);
    assert_null(back.ledger.rounds);
    wf_bytes_close(&text);
    wf_arena_free(&a);
}

static void the_ends_of_files_come_back(void **state)
{
    uint64_t ends[] = {7, 7, 1000000007};
    wf_manifest m = {.job = "j",
                     .digest = "0123456789abcdef",
                     .weft = "0.1.0",
                     .rule = "sgd",
                     .ledger = {.records = 1000000007, .file_ends = ends, .n_file_ends = 3}};
    wf_arena *a = wf_arena_new(0);
    wf_bytes text = {0};
    wf_manifest back = {0};
    wf_err err;

    (void)state;
    assert_int_equal(wf_manifest_encode(&m, &text, &err), WF_OK);
    assert_int_equal(decode(wf_bytes_str(&text), a, &back, &err), WF_OK);
    assert_int_equal(back.ledger.n_file_ends, 3);
    assert_memory_equal(back.ledger.file_ends, ends, sizeof ends);
    assert_int_equal(
        decode(changed(wf_bytes_str(&text), "\"file_ends\"", "\"other\""), a, &back, &err), WF_OK);
    assert_int_equal(back.ledger.n_file_ends, 0); /* of a weft before there were any */
    m.ledger.n_file_ends = 0;
    wf_bytes_close(&text);
    assert_int_equal(wf_manifest_encode(&m, &text, &err), WF_OK);
    assert_null(strstr(wf_bytes_str(&text), "file_ends"));
    wf_bytes_close(&text);
    wf_arena_free(&a);
}

/* As many files as a job keeps account of. */
static void the_files_of_long_jobs_come_back(void **state)
{
    enum { N = 128 << 10 };
    static uint64_t earlier[N];
    wf_ckpt_rounds rounds = {.earlier = earlier, .n_earlier = N};
    wf_manifest m = {.job = "j",
                     .digest = "0123456789abcdef",
                     .weft = "0.1.0",
                     .rule = "sgd",
                     .ledger = {.rounds = &rounds}};
    wf_arena *a = wf_arena_new(0);
    wf_bytes text = {0};
    wf_manifest back = {0};
    wf_err err;

    (void)state;
    for (size_t i = 0; i < N; i++)
        earlier[i] = i * 0x9e3779b97f4a7c15;
    assert_int_equal(wf_manifest_encode(&m, &text, &err), WF_OK);
    assert_int_equal(decode(wf_bytes_str(&text), a, &back, &err), WF_OK);
    assert_int_equal(back.ledger.rounds->n_earlier, N);
    assert_memory_equal(back.ledger.rounds->earlier, earlier, sizeof earlier);
    wf_bytes_close(&text);
    wf_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_very_numbers_come_back),
        cmocka_unit_test(the_very_words_come_back),
        cmocka_unit_test(the_files_of_rounds_come_back),
        cmocka_unit_test(the_ends_of_files_come_back),
        cmocka_unit_test(the_files_of_long_jobs_come_back),
        cmocka_unit_test(words_that_are_out_of_bounds_are_told),
        cmocka_unit_test(what_is_out_of_bounds_is_not_written),
        cmocka_unit_test(what_is_out_of_bounds_is_not_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
