/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/tokens.c */
#include "common/data/tokens.h"
#include "common/base/size.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#define XXH_INLINE_ALL /* words are short: a call costs as much as their hash */
#include <xxhash.h>

#define UNKNOWN "[UNK]"
#define TO_UTF8 "convert the file to UTF-8, or write split: bytes"

/* A token as it is looked up: what is beyond the longest word of a vocabulary is left out. */
typedef struct token {
    char text[WF_LEARNT_WORD];
    size_t n;
    bool is_long;
} token;

bool wf_tokens_are_read(const wf_field_spec *field)
{
    return field->n_steps && strcmp(field->steps[0].type, "text_vectorization") == 0;
}

/* ---- planning ---- */

static wf_token_bytes bytes_of(const wf_token_form *form)
{
    wf_token_bytes b;

    for (int c = 0; c < 256; c++) {
        bool ascii = c < 128;

        b.as[c] = (uint16_t)(ascii && form->lowers ? tolower(c) : c);
        if (ascii && form->strips && ispunct(c))
            b.as[c] = WF_BYTE_LEFT_OUT;
        else if (ascii && form->split == WF_SPLIT_WHITESPACE && isspace(c))
            b.as[c] = WF_BYTE_BLANK;
    }
    return b;
}

static wf_status check_options(const wf_map_step *step, bool windows, bool is_bag, wf_err *err)
{
    const wf_token_form *form = &step->tokens;
    bool file = step->text && step->text[0];

    if (step->number != trunc(step->number) || step->number < 0 || (form->split > WF_SPLIT_BYTES) ||
        (step->number > 0 && step->number <= WF_TOKENS_FIRST) || form->bins == 1)
        return wf_fail(err, WF_USAGE, "each needs room for a word beside what pads and is unknown",
                       "max_tokens: %g, hash: %" PRIu64, step->number, form->bins);
    if (form->split == WF_SPLIT_BYTES && (step->number > 0 || file || form->bins))
        return wf_fail(err, WF_USAGE, "leave it out: a byte is a number from 0 to 255",
                       "split: bytes takes no %s",
                       form->bins ? "hash"
                       : file     ? "vocabulary"
                                  : "max_tokens");
    if (form->split == WF_SPLIT_BYTES && (form->lowers || form->strips))
        return wf_fail(err, WF_USAGE, "leave standardize out, or write standardize: none",
                       "split: bytes takes bytes as they are");
    if (form->bins && (step->number > 0 || file))
        return wf_fail(err, WF_USAGE, "leave one of them out",
                       "both hash and %s: hashed tokens have no vocabulary",
                       file ? "vocabulary" : "max_tokens");
    if (windows && form->length)
        return wf_fail(err, WF_USAGE, "leave it out: data.sequence_length is the length",
                       "output_sequence_length, of windows");
    if (!windows && !form->length && !is_bag)
        return wf_fail(err, WF_USAGE, "write output_sequence_length: 200, or name it in data.bags",
                       "how many tokens a record has is not known");
    if (form->length > WF_DATA_MOST_OF_BAG)
        return wf_fail(err, WF_USAGE, NULL, "records of %" PRIu64 " tokens; 1 to %d", form->length,
                       WF_DATA_MOST_OF_BAG);
    return WF_OK;
}

/* A file of words: as many as there are numbers for, and none of them is what stands for others. */
static wf_status read_words(const wf_map_step *step, wf_vocabulary *words, wf_err *err)
{
    size_t n, room = step->number > 0 ? (size_t)step->number - WF_TOKENS_FIRST : SIZE_MAX;

    WF_TRY(wf_vocabulary_read(words, step->text, err));
    n = wf_vocabulary_n(words);
    if (wf_vocabulary_find(words, UNKNOWN, strlen(UNKNOWN)) >= 0)
        return wf_fail(err, WF_INVALID, "leave it out of the file: it is 1 in any vocabulary",
                       "%s holds the word " UNKNOWN, step->text);
    if (n > room)
        return wf_fail(err, WF_INVALID, "raise max_tokens, or leave it out",
                       "%s holds %zu words, and max_tokens: %.0f leaves room for %zu beside what "
                       "pads and what is unknown",
                       step->text, n, step->number, room);
    return WF_OK;
}

static wf_status plan_words(const wf_map_step *step, wf_tokens *out, wf_err *err)
{
    if (out->form.split == WF_SPLIT_BYTES || out->form.bins)
        return WF_OK;
    WF_TRY(wf_vocabulary_new(&out->words, err));
    if (step->n_words)
        return wf_vocabulary_add(out->words, step->words, step->n_words, err);
    out->learns = !step->text || !step->text[0];
    return out->learns ? WF_OK : read_words(step, out->words, err);
}

wf_status wf_tokens_plan(const wf_field_spec *field, bool windows, wf_tokens *out, wf_err *err)
{
    const wf_map_step *step = &field->steps[0];
    wf_status rc = check_options(step, windows, field->is_bag, err);

    *out = (wf_tokens){.form = step->tokens, .bytes = bytes_of(&step->tokens)};
    if (rc == WF_OK)
        rc = plan_words(step, out, err);
    return wf_err_wrap(err, rc, "map of \"%.64s\": text_vectorization", field->name);
}

void wf_tokens_close(wf_tokens *t)
{
    wf_vocabulary_free(&t->words);
    *t = (wf_tokens){0};
}

/* ---- tokens of a text ---- */

static wf_status not_utf8(uint64_t at, wf_err *err)
{
    return wf_fail(err, WF_INVALID, TO_UTF8, "byte %" PRIu64 " begins no character of UTF-8",
                   at + 1);
}

bool wf_utf8_take(wf_utf8 *u, uint8_t byte)
{
    bool fits = u->left == 0 || (byte >= u->least && byte <= u->most);

    if (u->left) {
        *u = (wf_utf8){(uint8_t)(u->left - 1), 0x80, 0xbf};
        return fits;
    }
    if (byte >= 0x80 && (byte < 0xc2 || byte > 0xf4))
        return false;
    u->left = byte < 0x80 ? 0 : byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    u->least = byte == 0xe0 ? 0xa0 : byte == 0xf0 ? 0x90 : 0x80; /* no longer than need be */
    u->most = byte == 0xed ? 0x9f : byte == 0xf4 ? 0x8f : 0xbf;  /* no halves of UTF-16 */
    return true;
}

/* The word at text[*at] or behind; n is 0 at the end. */
static void next_word(const wf_tokens *t, const char *text, size_t n, size_t *at, token *out)
{
    size_t i = *at, length = 0;

    while (i < n && length == 0) {
        for (; i < n && t->bytes.as[(uint8_t)text[i]] == WF_BYTE_BLANK; i++)
            continue;
        for (; i < n; i++) {
            uint16_t as = t->bytes.as[(uint8_t)text[i]];

            if (as == WF_BYTE_BLANK)
                break;
            if (as == WF_BYTE_LEFT_OUT)
                continue;
            if (length < sizeof out->text)
                out->text[length] = (char)as;
            length++;
        }
    }
    *at = i;
    out->is_long = length > sizeof out->text;
    out->n = WF_MIN(length, sizeof out->text);
}

static wf_status next_character(const wf_tokens *t, const char *text, size_t n, size_t *at,
                                token *out, wf_err *err)
{
    size_t i = *at;

    for (out->n = 0; i < n && out->n == 0;) {
        wf_utf8 u = {0};
        size_t begin = i;

        do {
            uint16_t as = t->bytes.as[(uint8_t)text[i]];

            if (!wf_utf8_take(&u, (uint8_t)text[i]))
                return not_utf8(begin, err);
            if (as < WF_BYTE_LEFT_OUT)
                out->text[out->n++] = (char)as;
        } while (++i < n && u.left);
        if (u.left)
            return not_utf8(begin, err);
    }
    out->is_long = false;
    *at = i;
    return WF_OK;
}

/* The next token; out->n is 0 at the end. */
static wf_status next(const wf_tokens *t, const char *text, size_t n, size_t *at, token *out,
                      wf_err *err)
{
    if (t->form.split == WF_SPLIT_CHARACTER)
        return next_character(t, text, n, at, out, err);
    if (t->form.split == WF_SPLIT_WHITESPACE) {
        next_word(t, text, n, at, out);
        return WF_OK;
    }
    out->n = *at < n;
    if (out->n)
        out->text[0] = text[(*at)++];
    return WF_OK;
}

static int64_t number_of(const wf_tokens *t, const token *w)
{
    if (t->form.split == WF_SPLIT_BYTES)
        return (uint8_t)w->text[0];
    if (t->form.bins)
        return 1 + (int64_t)(XXH3_64bits(w->text, w->n) % (t->form.bins - 1));
    return w->is_long ? WF_TOKENS_FIRST - 1
                      : wf_vocabulary_find(t->words, w->text, w->n) + WF_TOKENS_FIRST;
}

/* Counts the first `most` tokens; those that no vocabulary can hold stay unknown. */
static wf_status count(const wf_tokens *t, const char *text, size_t n, uint64_t most, wf_err *err)
{
    token w;

    for (size_t at = 0; most; most--) {
        wf_status rc;

        WF_TRY(next(t, text, n, &at, &w, err));
        if (w.n == 0)
            break;
        if (w.is_long || memchr(w.text, 0, w.n))
            continue;
        rc = wf_vocabulary_count(t->words, w.text, w.n, err);
        if (rc == WF_FULL)
            return wf_err_hint(err, rc, "write hash: N, or name a file of words in vocabulary");
        if (rc != WF_OK)
            return wf_err_hint(err, rc, "convert the file to UTF-8, or write hash: N");
    }
    return WF_OK;
}

wf_status wf_tokens_put(const wf_tokens *t, const wf_bag *bag, const char *text, size_t n,
                        int64_t out[], wf_err *err)
{
    uint64_t most = t->form.length ? t->form.length : UINT64_MAX, count_of = 0;
    size_t at = 0;
    bool ends = false;
    token w;

    if (t->learns)
        WF_TRY(count(t, text, n, UINT64_MAX, err));
    for (; !t->learns && count_of < most; count_of++) {
        WF_TRY(next(t, text, n, &at, &w, err));
        if (w.n && bag && count_of == bag->most)
            WF_TRY(wf_bag_is_full(bag, &ends, err));
        if (w.n == 0 || ends)
            break;
        out[count_of] = number_of(t, &w);
    }
    if (bag)
        wf_bag_fill(bag, out, count_of);
    else
        memset(out + count_of, 0, (size_t)(most - count_of) * sizeof *out);
    return WF_OK;
}

wf_status wf_tokens_put_window(const wf_tokens *t, const char *text, size_t n, uint64_t skip,
                               int64_t out[], wf_err *err)
{
    size_t at = 0;
    token w;

    if (t->learns) {
        memset(out, 0, (size_t)t->form.length * sizeof *out);
        return count(t, text, n, t->counts, err);
    }
    for (uint64_t i = 0; i < skip + t->form.length; i++) {
        WF_TRY(next(t, text, n, &at, &w, err));
        if (w.n == 0)
            return wf_fail(err, WF_INVALID, "leave data files as they are while a job runs",
                           "a window of %" PRIu64 " tokens", i);
        if (i >= skip)
            out[i - skip] = number_of(t, &w);
    }
    return WF_OK;
}

/* ---- where tokens are ---- */

void wf_token_scan_begin(wf_token_scan *s, const wf_token_form *form)
{
    *s = (wf_token_scan){.split = form->split, .bytes = bytes_of(form), .line = 1};
}

/* A byte of a word, or one that ends it. A word begins with the first byte that is not left out. */
static wf_status scan_word(wf_token_scan *s, uint16_t as, wf_token_take *take, void *arg,
                           wf_err *err)
{
    if (as == WF_BYTE_BLANK)
        return wf_token_scan_end(s, take, arg, err);
    if (as != WF_BYTE_LEFT_OUT && !s->has_token) {
        s->token = (wf_token_place){.begin = s->at, .line = s->line};
        s->has_token = true;
    }
    return WF_OK;
}

static wf_status scan_character(wf_token_scan *s, char byte, uint16_t as, wf_token_take *take,
                                void *arg, wf_err *err)
{
    if (s->character.left == 0)
        s->token = (wf_token_place){.begin = s->at, .line = s->line};
    if (s->split == WF_SPLIT_CHARACTER && !wf_utf8_take(&s->character, (uint8_t)byte))
        return not_utf8(s->token.begin - s->line_begin, err);
    s->token.end = s->at + 1;
    return s->character.left || as == WF_BYTE_LEFT_OUT ? WF_OK : take(arg, &s->token, err);
}

wf_status wf_token_scan_piece(wf_token_scan *s, const char *text, size_t n, wf_token_take *take,
                              void *arg, wf_err *err)
{
    for (size_t i = 0; i < n; i++, s->at++) {
        uint16_t as = s->bytes.as[(uint8_t)text[i]];

        if (s->split == WF_SPLIT_WHITESPACE)
            WF_TRY(scan_word(s, as, take, arg, err));
        else
            WF_TRY(scan_character(s, text[i], as, take, arg, err));
        if (text[i] == '\n') {
            s->line++;
            s->line_begin = s->at + 1;
        }
    }
    return WF_OK;
}

wf_status wf_token_scan_end(wf_token_scan *s, wf_token_take *take, void *arg, wf_err *err)
{
    if (s->character.left)
        return not_utf8(s->token.begin - s->line_begin, err);
    if (s->split != WF_SPLIT_WHITESPACE || !s->has_token)
        return WF_OK;
    s->has_token = false;
    s->token.end = s->at;
    return take(arg, &s->token, err);
}
