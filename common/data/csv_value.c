/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/csv_value.c */
#include "common/data/csv_value.h"
#include "common/base/size.h"
#include "common/data/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL /* words are short: a call costs as much as their hash */
#include <xxhash.h>

#define NO_VOCABULARY "write hash: N in place of vocabulary, which takes any words"

enum { LONGEST_WORD = 256 };

/* ---- words ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(((const wf_csv_word *)a)->text, ((const wf_csv_word *)b)->text);
}

wf_status wf_csv_words(const wf_column_spec *from, wf_arena *arena, wf_csv_column *c, wf_err *err)
{
    c->words = wf_arena_array(arena, from->n_words, sizeof *c->words);
    if (!c->words)
        return wf_fail_nomem(err, from->n_words * sizeof *c->words);
    for (; c->n_words < from->n_words; c->n_words++) {
        wf_csv_word *w = &c->words[c->n_words];

        if (strlen(from->words[c->n_words]) > LONGEST_WORD)
            return wf_fail(err, WF_USAGE, NULL, "a word of column \"%.64s\" has more than %d bytes",
                           from->name, LONGEST_WORD);
        *w = (wf_csv_word){wf_arena_strdup(arena, from->words[c->n_words]), (int64_t)c->n_words};
        if (!w->text)
            return wf_fail_nomem(err, LONGEST_WORD);
    }
    qsort(c->words, c->n_words, sizeof *c->words, by_text);
    for (size_t i = 1; i < c->n_words; i++)
        if (by_text(&c->words[i - 1], &c->words[i]) == 0)
            return wf_fail(err, WF_USAGE, "name each word once",
                           "column \"%.64s\" has the word \"%.64s\" twice", from->name,
                           c->words[i].text);
    return WF_OK;
}

/* ---- cells ---- */

static wf_status bad_cell(const wf_csv_column *c, const wf_csv_cell *cell, const char *why,
                          wf_err *err)
{
    if (cell->n == 0)
        return wf_fail(err, WF_INVALID,
                       "add fill: 0 to the field's steps in data.map, or remove such records",
                       "column \"%.64s\" is empty", c->name);
    return wf_fail(err, WF_INVALID,
                   c->words ? "add it to the words in data.schema"
                            : "correct the data; name the words of a column in data.schema, or use "
                              "vocabulary or hash in data.map",
                   "column \"%.64s\": \"%.*s\" is %s", c->name, (int)WF_MIN(cell->n, (size_t)64),
                   cell->text, why);
}

static wf_status parse_word(const wf_csv_column *c, const wf_csv_cell *cell, int64_t *out,
                            wf_err *err)
{
    char text[2 * LONGEST_WORD + 1];
    const wf_csv_word *found;

    if (cell->n >= sizeof text)
        return bad_cell(c, cell, "not one of its words", err);
    wf_csv_copy(cell, text);
    found = bsearch(&(wf_csv_word){.text = text}, c->words, c->n_words, sizeof *c->words, by_text);
    if (!found || memchr(cell->text, 0, cell->n))
        return bad_cell(c, cell, "not one of its words", err);
    *out = found->index;
    return WF_OK;
}

/* The number of a cell for the step hash: a word, also one of no letters, is that of its bytes. */
static wf_status parse_hashed(const wf_csv_column *c, const wf_csv_cell *cell, int64_t *out,
                              wf_err *err)
{
    char *text;

    if (c->dtype == WF_NONE && wf_number_i64(cell->text, cell->n, out))
        return WF_OK;
    *out = (int64_t)XXH3_64bits(cell->text, cell->n);
    if (!cell->quoted)
        return WF_OK;
    text = malloc(cell->n + 1);
    if (!text)
        return wf_fail_nomem(err, cell->n + 1);
    *out = (int64_t)XXH3_64bits(text, wf_csv_copy(cell, text));
    free(text);
    return WF_OK;
}

/* Where the cell that begins at text[at] of a regular record ends: eight bytes at a time, of which
 * `same` has the delimiter in each; the lowest byte of a number is the first. */
static size_t end_of(const char *text, size_t n, uint64_t same, size_t at)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);

    for (; at + 8 <= n; at += 8) {
        uint64_t x, found;

        memcpy(&x, text + at, sizeof x);
        x ^= same;
        found = (x - ones) & ~x & ones << 7;
        if (found)
            return at + (size_t)__builtin_ctzll(found) / 8;
    }
    while (at < n && text[at] != (char)(same & 0xFF))
        at++;
    return at;
}

void wf_csv_hash_words(const char *text, size_t n, char delimiter, size_t at, size_t count,
                       int64_t out[])
{
    const uint64_t same = (uint8_t)delimiter * UINT64_C(0x0101010101010101);

    for (size_t i = 0; i < count; i++) {
        size_t begin = at, end = end_of(text, n, same, at);

        at = end + 1;
        while (begin < end && wf_csv_is_blank(text[begin]))
            begin++;
        while (end > begin && wf_csv_is_blank(text[end - 1]))
            end--;
        out[i] = (int64_t)XXH3_64bits(text + begin, end - begin);
    }
}

/* The place of a cell among the field's words, from 1; while these are learnt it is counted. */
static wf_status parse_known(const wf_csv_values *v, const wf_csv_column *c,
                             const wf_csv_cell *cell, int64_t *out, wf_err *err)
{
    char text[2 * WF_LEARNT_WORD + 1];
    size_t n = cell->n;

    *out = 0;
    if (n < sizeof text)
        n = wf_csv_copy(cell, text);
    if (n == 0 || (n > WF_LEARNT_WORD && !v->learns))
        return WF_OK;
    if (!v->learns)
        *out = wf_vocabulary_find(v->words, text, n) + 1;
    else if (n > WF_LEARNT_WORD)
        return wf_fail(err, WF_INVALID, NO_VOCABULARY,
                       "column \"%.64s\": a word of more than %d bytes", c->name, WF_LEARNT_WORD);
    else
        return wf_err_hint(err,
                           wf_err_wrap(err, wf_vocabulary_count(v->words, text, n, err),
                                       "column \"%.64s\"", c->name),
                           NO_VOCABULARY);
    return WF_OK;
}

static void put_nan(wf_dtype dtype, void *out, size_t at)
{
    if (dtype == WF_F64)
        ((double *)out)[at] = (double)NAN;
    else
        ((float *)out)[at] = NAN;
}

wf_status wf_csv_value(const wf_csv_values *v, const wf_csv_column *c, const wf_csv_cell *cell,
                       void *out, size_t at, wf_err *err)
{
    wf_dtype dtype = v->dtype;
    int64_t whole = 0;
    double number;

    if (cell->n == 0 && v->fills && dtype != WF_I64) {
        put_nan(dtype, out, at);
        return WF_OK;
    }
    if (v->words)
        WF_TRY(parse_known(v, c, cell, &whole, err));
    else if (c->words)
        WF_TRY(parse_word(c, cell, &whole, err));
    else if (v->hashes && dtype == WF_I64 && (c->dtype == WF_NONE || c->dtype == WF_U8))
        WF_TRY(parse_hashed(c, cell, &whole, err));
    else if ((dtype == WF_I64 || c->dtype == WF_I64) && !wf_number_i64(cell->text, cell->n, &whole))
        return bad_cell(c, cell, "no whole number", err);
    number = (double)whole;
    if (dtype == WF_I64) {
        ((int64_t *)out)[at] = whole;
        return WF_OK;
    }
    if (!c->words && c->dtype != WF_I64 && !wf_number_f64(cell->text, cell->n, &number))
        return bad_cell(c, cell, "not a number", err);
    if (dtype == WF_F64)
        ((double *)out)[at] = number;
    else
        ((float *)out)[at] = (float)number;
    return WF_OK;
}
