/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/survey_text.c - what the lines of plain text hold. */
#include "common/base/size.h"
#include "common/data/format.h"
#include "common/data/number.h"
#include "common/data/survey.h"
#include "common/data/tokens.h"

#include <string.h>
#include <xxhash.h>

enum { SHOWN = 60 /* bytes of a line */ };
typedef enum column { LABEL, WORDS, CHARACTERS, WORD } column; /* without labels less by one */
static const char *const names[] = {"label", "words", "characters", "word"};

typedef struct pass {
    wf_survey *survey;
    wf_text_facts *facts;
    wf_distinct characters;
    uint64_t lines;
    wf_token_scan scan;
    const char *line; /* what it is of */
    uint64_t words;   /* of the line */
} pass;

static wf_survey_column *column_of(const pass *p, column c)
{
    return &p->survey->columns[c - !p->facts->labelled];
}

/* ---- whether lines have labels ---- */

static wf_status look_for_label(void *arg, const char *text, size_t n, wf_err *err)
{
    wf_text_facts *f = arg;
    const char *tab = f->labelled ? memchr(text, '\t', n) : NULL;
    double label;

    (void)err;
    f->labelled = tab && wf_number_f64(text, (size_t)(tab - text), &label);
    return WF_OK;
}

/* ---- words and characters ---- */

static wf_status take_word(void *arg, const wf_token_place *place, wf_err *err)
{
    pass *p = arg;
    char word[WF_LEARNT_WORD];
    size_t n = 0;

    for (uint64_t i = place->begin; i < place->end && n < sizeof word; i++) {
        uint16_t as = p->scan.bytes.as[(uint8_t)p->line[i]];

        if (as < WF_BYTE_LEFT_OUT)
            word[n++] = (char)as;
    }
    p->words++;
    return wf_distinct_add(&column_of(p, WORD)->values, XXH3_64bits(word, n), WF_SURVEY_DISTINCT,
                           err);
}

static wf_status take_words(pass *p, const char *text, size_t n, wf_err *err)
{
    wf_token_scan_begin(
        &p->scan, &(wf_token_form){.split = WF_SPLIT_WHITESPACE, .lowers = true, .strips = true});
    p->line = text;
    p->words = 0;
    WF_TRY(wf_token_scan_piece(&p->scan, text, n, take_word, p, err));
    return wf_token_scan_end(&p->scan, take_word, p, err);
}

/* Counts characters up to the first byte that is none. */
static wf_status take_characters(pass *p, const char *text, size_t n, uint64_t *count, wf_err *err)
{
    wf_utf8 u = {0};
    size_t begin = 0;

    for (size_t i = 0; i < n; i++) {
        if (!wf_utf8_take(&u, (uint8_t)text[i]) || (u.left && i + 1 == n)) {
            if (p->facts->is_utf8)
                p->facts->bad_line = p->lines;
            p->facts->is_utf8 = false;
            return WF_OK;
        }
        if (u.left)
            continue;
        WF_TRY(wf_distinct_add(&p->characters, XXH3_64bits(text + begin, i + 1 - begin),
                               WF_SURVEY_EXACT, err));
        begin = i + 1;
        ++*count;
    }
    return WF_OK;
}

static wf_status keep_line(pass *p, const char *text, size_t n, wf_err *err)
{
    char *copy;

    if (p->facts->n_first == WF_SURVEY_LINES)
        return WF_OK;
    copy = wf_arena_alloc(p->survey->arena, SHOWN + sizeof "...");
    if (!copy)
        return wf_fail_nomem(err, SHOWN);
    memcpy(copy, text, WF_MIN(n, (size_t)SHOWN));
    strcpy(copy + WF_MIN(n, (size_t)SHOWN), n > SHOWN ? "..." : "");
    p->facts->first[p->facts->n_first++] = copy;
    return WF_OK;
}

static wf_status take_number(pass *p, column c, double number, wf_err *err)
{
    wf_survey_column *to = column_of(p, c);

    to->wholes += number == (double)(int64_t)number;
    return wf_survey_number(p->survey, to, number, err);
}

static wf_status take_line(void *arg, const char *text, size_t n, wf_err *err)
{
    pass *p = arg;
    wf_text_facts *f = p->facts;
    uint64_t characters = 0;
    double label = 0;

    p->lines++;
    f->bytes += n;
    f->empty += n == 0;
    WF_TRY(keep_line(p, text, n, err));
    if (f->labelled) {
        size_t begin = (size_t)((const char *)memchr(text, '\t', n) - text);

        if (!wf_number_f64(text, begin, &label))
            return wf_fail(err, WF_INVALID, NULL, "the label is no number"); /* it was before */
        WF_TRY(take_number(p, LABEL, label, err));
        text += begin + 1;
        n -= begin + 1;
    }
    WF_TRY(take_words(p, text, n, err));
    WF_TRY(take_characters(p, text, n, &characters, err));
    f->words += p->words;
    f->characters += characters;
    f->least_words = WF_MIN(f->least_words, p->words);
    f->most_words = WF_MAX(f->most_words, p->words);
    WF_TRY(take_number(p, WORDS, (double)p->words, err));
    return take_number(p, CHARACTERS, (double)characters, err);
}

static wf_status survey(pass *p, wf_stock *stock, wf_err *err)
{
    wf_text_facts *f = p->facts;
    bool exact;

    WF_TRY(wf_stock_each(stock, look_for_label, f, err));
    WF_TRY(wf_survey_columns(p->survey, f->labelled ? 4 : 3, err));
    for (uint32_t i = 0; i < p->survey->n_columns; i++)
        p->survey->columns[i].name = names[i + !f->labelled];
    WF_TRY(wf_stock_each(stock, take_line, p, err));
    f->distinct_words = wf_distinct_count(&column_of(p, WORD)->values, &f->exact_words);
    f->distinct_characters = wf_distinct_count(&p->characters, &exact);
    return WF_OK;
}

wf_status wf_text_survey(const char *path, wf_survey *out, wf_text_facts *facts, wf_err *err)
{
    pass p = {.survey = out, .facts = facts};
    wf_stock stock = {0};
    wf_status rc;

    *facts = (wf_text_facts){.labelled = true, .is_utf8 = true, .least_words = UINT64_MAX};
    *out = (wf_survey){.arena = wf_arena_new(0)};
    if (!out->arena)
        return wf_fail_nomem(err, sizeof *out);
    rc = wf_stock_take(&stock, &path, 1, &wf_format_text.text->form, err);
    out->records = stock.records;
    if (rc == WF_OK)
        rc = survey(&p, &stock, err);
    wf_distinct_close(&p.characters);
    wf_stock_close(&stock);
    return rc;
}
