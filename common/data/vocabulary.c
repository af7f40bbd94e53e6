/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/vocabulary.c - an open hash table over words in the order of their arrival. */
#include "common/data/vocabulary.h"
#include "common/base/arena.h"
#include "common/base/file.h"
#include "common/base/size.h"
#include "common/base/text.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { FEWEST_SLOTS = 64, FILE_BYTES = WF_LEARNT_BYTES + WF_LEARNT_WORDS /* with CRLF */ };
static const char BOM[] = "\xef\xbb\xbf";

struct wf_vocabulary {
    wf_arena *arena; /* of the text */
    const char **words;
    uint64_t *counts; /* [n] of words */
    size_t n, bytes;
    uint32_t *slots; /* [n_slots], a power of two over 2 * n: place + 1; 0: free */
    size_t n_slots;
};

wf_status wf_vocabulary_new(wf_vocabulary **out, wf_err *err)
{
    wf_vocabulary *v = calloc(1, sizeof *v);

    if (v)
        v->arena = wf_arena_new(0);
    if (v && v->arena) {
        *out = v;
        return WF_OK;
    }
    free(v);
    return wf_fail_nomem(err, sizeof *v);
}

void wf_vocabulary_free(wf_vocabulary **v)
{
    if (!*v)
        return;
    wf_arena_free(&(*v)->arena);
    free((*v)->words);
    free((*v)->counts);
    free((*v)->slots);
    free(*v);
    *v = NULL;
}

size_t wf_vocabulary_n(const wf_vocabulary *v)
{
    return v->n;
}

const char *const *wf_vocabulary_words(const wf_vocabulary *v)
{
    return v->words;
}

/* ---- the table ---- */

/* Where a word is, or the free slot where it belongs. */
static size_t slot_of(const wf_vocabulary *v, const char *text, size_t n)
{
    size_t at = (size_t)XXH3_64bits(text, n) & (v->n_slots - 1);

    while (v->slots[at]) {
        const char *word = v->words[v->slots[at] - 1];

        if (strncmp(word, text, n) == 0 && word[n] == 0)
            break;
        at = (at + 1) & (v->n_slots - 1);
    }
    return at;
}

int64_t wf_vocabulary_find(const wf_vocabulary *v, const char *text, size_t n)
{
    if (v->n == 0 || n > WF_LEARNT_WORD || memchr(text, 0, n))
        return -1;
    return (int64_t)v->slots[slot_of(v, text, n)] - 1;
}

static void fill_slots(wf_vocabulary *v)
{
    memset(v->slots, 0, v->n_slots * sizeof *v->slots);
    for (size_t i = 0; i < v->n; i++)
        v->slots[slot_of(v, v->words[i], strlen(v->words[i]))] = (uint32_t)i + 1;
}

/* Room for one word more. */
static wf_status grow(wf_vocabulary *v, wf_err *err)
{
    size_t n_slots = WF_MAX(2 * v->n_slots, (size_t)FEWEST_SLOTS), room = n_slots / 2;
    const char **words;
    uint64_t *counts;
    uint32_t *slots;

    if (v->n < v->n_slots / 2)
        return WF_OK;
    words = realloc(v->words, room * sizeof *words);
    v->words = words ? words : v->words;
    counts = realloc(v->counts, room * sizeof *counts);
    v->counts = counts ? counts : v->counts;
    slots = realloc(v->slots, n_slots * sizeof *slots);
    v->slots = slots ? slots : v->slots;
    if (!words || !counts || !slots)
        return wf_fail_nomem(err, n_slots * sizeof *slots + room * sizeof *words);
    v->n_slots = n_slots;
    fill_slots(v);
    return WF_OK;
}

static wf_status append(wf_vocabulary *v, const char *text, size_t n, wf_err *err)
{
    char word[WF_LEARNT_WORD + 1];

    if (n == 0 || n > WF_LEARNT_WORD)
        return wf_fail(err, WF_INVALID, NULL, "a word of %zu bytes; 1 to %d", n, WF_LEARNT_WORD);
    memcpy(word, text, n);
    word[n] = 0;
    if (strlen(word) != n || !wf_text_is_utf8(word))
        return wf_fail(err, WF_INVALID, NULL, "\"%s\" is not UTF-8", word);
    if (v->n == WF_LEARNT_WORDS)
        return wf_fail(err, WF_FULL, NULL, "more than %d different words", WF_LEARNT_WORDS);
    if (v->bytes + n + 1 > WF_LEARNT_BYTES)
        return wf_fail(err, WF_FULL, NULL, "different words of more than %d MiB",
                       WF_LEARNT_BYTES >> 20);
    WF_TRY(grow(v, err));
    v->words[v->n] = wf_arena_strdup(v->arena, word);
    if (!v->words[v->n])
        return wf_fail_nomem(err, n + 1);
    v->counts[v->n] = 0;
    v->slots[slot_of(v, text, n)] = (uint32_t)v->n + 1;
    v->n++;
    v->bytes += n + 1;
    return WF_OK;
}

/* ---- counted ---- */

wf_status wf_vocabulary_count(wf_vocabulary *v, const char *text, size_t n, wf_err *err)
{
    int64_t at = wf_vocabulary_find(v, text, n);

    if (at < 0) {
        WF_TRY(append(v, text, n, err));
        at = (int64_t)v->n - 1;
    }
    v->counts[at]++;
    return WF_OK;
}

typedef struct counted {
    const char *word;
    uint64_t count;
} counted;

static int by_count(const void *a, const void *b)
{
    const counted *x = a, *y = b;

    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return strcmp(x->word, y->word);
}

static int by_count_last_first(const void *a, const void *b)
{
    const counted *x = a, *y = b;

    return x->count != y->count ? by_count(a, b) : strcmp(y->word, x->word);
}

wf_status wf_vocabulary_keep(wf_vocabulary *v, size_t most, bool last_first, wf_err *err)
{
    counted *all = malloc(v->n * sizeof *all + 1);

    if (!all)
        return wf_fail_nomem(err, v->n * sizeof *all);
    for (size_t i = 0; i < v->n; i++)
        all[i] = (counted){v->words[i], v->counts[i]};
    if (v->n)
        qsort(all, v->n, sizeof *all, last_first ? by_count_last_first : by_count);
    v->n = WF_MIN(v->n, most);
    for (size_t i = 0; i < v->n; i++) {
        v->words[i] = all[i].word;
        v->counts[i] = all[i].count;
    }
    free(all);
    if (v->n_slots)
        fill_slots(v);
    return WF_OK;
}

/* ---- given ---- */

static wf_status add_new(wf_vocabulary *v, const char *text, size_t n, wf_err *err)
{
    if (wf_vocabulary_find(v, text, n) >= 0)
        return wf_fail(err, WF_INVALID, "name each word once", "the word \"%.*s\" is there twice",
                       (int)n, text);
    return append(v, text, n, err);
}

wf_status wf_vocabulary_add(wf_vocabulary *v, const char *const words[], size_t n, wf_err *err)
{
    for (size_t i = 0; i < n; i++)
        WF_TRY(add_new(v, words[i], strlen(words[i]), err));
    return WF_OK;
}

static wf_status add_lines(wf_vocabulary *v, const char *text, size_t size, const char *path,
                           wf_err *err)
{
    size_t line = 1;

    while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r'))
        size--;
    if (size == 0)
        return wf_fail(err, WF_INVALID, "write a word a line", "%s holds no words", path);
    for (size_t at = 0, end; at < size; at = end + 1, line++) {
        const char *lf = memchr(text + at, '\n', size - at);
        size_t n;

        end = lf ? (size_t)(lf - text) : size;
        n = end - at - (end > at && text[end - 1] == '\r');
        WF_TRY(wf_err_wrap(err, add_new(v, text + at, n, err), "%s:%zu", path, line));
    }
    return WF_OK;
}

wf_status wf_vocabulary_read(wf_vocabulary *v, const char *path, wf_err *err)
{
    wf_bytes text = {0};
    wf_status rc = wf_file_read(path, FILE_BYTES, &text, err);

    if (rc == WF_OK) {
        const char *words = wf_bytes_str(&text);
        size_t mark = strncmp(words, BOM, strlen(BOM)) == 0 ? strlen(BOM) : 0;

        rc = add_lines(v, words + mark, text.size - mark, path, err);
    }
    wf_bytes_close(&text);
    return rc;
}
