/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/peek_csv.c */
#include "cmd/cli/peek_csv.h"
#include "cmd/cli/term.h"
#include "common/base/size.h"
#include "common/data/survey.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    MOST_NAMED = 64,  /* columns, in a suggestion, */
    MOST_WORDED = 14, /* and those that are fields of their own */
    BINS = 1 << 18    /* for words that are too many */
};

static bool is_usable(const wf_survey *s, const wf_survey_column *c)
{
    return (c->numbers > 0 && c->numbers + c->empty == s->records) ||
           (c->numbers == 0 && c->empty == 0 && !c->more_words);
}

/* Words that are too many for a schema, or are not in all records: a field of their own. */
static bool is_worded(const wf_survey *s, uint32_t at, uint32_t label)
{
    uint32_t before = 0;

    for (uint32_t i = 0; i <= at; i++) {
        const wf_survey_column *c = &s->columns[i];
        bool worded = s->header && i != label && c->numbers == 0 && c->n_words && !is_usable(s, c);

        if (i == at)
            return worded && before < MOST_WORDED;
        before += worded;
    }
    return false;
}

/* A word as YAML has it, quoted where it might mean something else. */
static void print_word(const char *text)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    bool plain = text[0] && strchr(letters, text[0]) && text[1 + strspn(text + 1, letters)] == 0;

    wf_term_print(stdout, plain ? "" : "\"");
    for (const char *c = text; *c; c++)
        wf_term_print(stdout, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    wf_term_print(stdout, plain ? "" : "\"");
}

/* The field of a column of words; "x" and "y" are taken. */
static void print_field(const char *column)
{
    bool taken = strcmp(column, "x") == 0 || strcmp(column, "y") == 0;

    if (taken)
        wf_term_print(stdout, "%s_words", column);
    else
        print_word(column);
}

static void print_words(const char *const words[], uint32_t n)
{
    wf_term_print(stdout, "[");
    for (uint32_t i = 0; i < n; i++) {
        wf_term_print(stdout, i ? ", " : "");
        print_word(words[i]);
    }
    wf_term_print(stdout, "]");
}

static void print_column(const wf_survey *s, const wf_survey_column *c, int width)
{
    uint64_t words = s->records - c->numbers - c->empty;

    wf_term_print(stdout, "  %-*s ", width, c->name);
    if (c->numbers && words)
        wf_term_print(stdout, " mixed, %" PRIu64 " numbers and %" PRIu64 " ", c->numbers, words);
    else if (c->numbers)
        wf_term_print(stdout, " %s %g to %g, mean %.6g, deviation %.6g",
                      c->wholes == c->numbers ? "whole" : "number", c->least, c->most, c->mean,
                      sqrt(c->squares / (double)c->numbers));
    if (words) {
        uint32_t n = WF_MIN(c->n_words, 8u);

        wf_term_print(stdout, c->numbers ? "words " : " words ");
        print_words(c->words, n);
        wf_term_print(stdout, c->more_words || n < c->n_words ? " and more" : "");
        if (c->more_words)
            wf_term_print(stdout, ", %s%" PRIu64 " different", c->uncounted ? "at least " : "",
                          c->distinct);
    }
    if (c->empty)
        wf_term_print(stdout, "%s empty in %" PRIu64 " records", c->numbers || words ? "," : "",
                      c->empty);
    wf_term_print(stdout, "\n");
}

/* `schema:`, where something must be said of columns: all of them without a header. */
static void print_schema(const wf_survey *s)
{
    bool any = false;

    for (uint32_t i = 0; i < s->n_columns; i++) {
        const wf_survey_column *c = &s->columns[i];
        bool words = c->n_words && !c->more_words && c->numbers == 0;

        if (s->header && !(words && is_usable(s, c)))
            continue;
        wf_term_print(stdout, any ? ", " : "    schema: {");
        any = true;
        print_word(c->name);
        wf_term_print(stdout, ": ");
        if (words)
            print_words(c->words, c->n_words);
        else
            wf_term_print(stdout, c->wholes == s->records ? "int64" : "float32");
    }
    wf_term_print(stdout, any ? "}\n" : "");
}

/* Columns on scales of their own, numbers that are missing, and words. */
static void print_map(const wf_survey *s, uint32_t label)
{
    bool missing = false, any = false;

    for (uint32_t i = 0; i < s->n_columns; i++)
        if (i != label && is_usable(s, &s->columns[i]) && s->columns[i].numbers) {
            missing |= s->columns[i].empty > 0;
            any |= s->columns[i].squares > 0;
        }
    if (any)
        wf_term_print(stdout, "    map: {x: [%sstandardise]", missing ? "{fill: 0}, " : "");
    for (uint32_t i = 0; i < s->n_columns; i++) {
        const wf_survey_column *c = &s->columns[i];

        if (!is_worded(s, i, label))
            continue;
        wf_term_print(stdout, any ? ", " : "    map: {");
        any = true;
        print_field(c->name);
        wf_term_print(stdout, ": [{%s: %" PRIu64 "}]", c->uncounted ? "hash" : "vocabulary",
                      c->uncounted ? (uint64_t)BINS : c->distinct);
    }
    wf_term_print(stdout, any ? "}\n" : "");
}

/* The column that is named as labels are, else the last one. */
static uint32_t label_column(const wf_survey *s)
{
    static const char *const names[] = {"label", "labels", "target", "class", "y", "outcome"};

    for (uint32_t i = 0; i < s->n_columns; i++)
        for (size_t k = 0; k < WF_COUNT(names); k++)
            if (strcasecmp(s->columns[i].name, names[k]) == 0)
                return i;
    return s->n_columns - 1;
}

static void print_columns(const wf_survey *s, uint32_t label)
{
    bool any = false, worded = false;

    for (uint32_t i = 0; i < s->n_columns; i++) {
        any |= i != label && is_usable(s, &s->columns[i]);
        worded |= is_worded(s, i, label);
    }
    wf_term_print(stdout, any || !worded ? "    columns: {x: [" : "    columns: {");
    for (uint32_t i = 0, n = 0; i < s->n_columns; i++)
        if (i != label && is_usable(s, &s->columns[i])) {
            wf_term_print(stdout, n++ ? ", " : "");
            print_word(s->columns[i].name);
        }
    wf_term_print(stdout, any || !worded ? "], " : "");
    for (uint32_t i = 0; i < s->n_columns; i++)
        if (is_worded(s, i, label)) {
            print_field(s->columns[i].name);
            wf_term_print(stdout, ": ");
            print_word(s->columns[i].name);
            wf_term_print(stdout, ", ");
        }
    wf_term_print(stdout, "y: ");
    print_word(s->columns[label].name);
    wf_term_print(stdout, "}\n");
}

/* All columns but the labels are inputs: one row of numbers, and fields of words. */
static void print_suggestion(const char *path, const wf_survey *s)
{
    uint32_t label = label_column(s);

    wf_term_print(stdout, "in a job file:\n  data:\n    format: csv\n    train: ");
    print_word(path);
    wf_term_print(stdout, "\n");
    if (s->delimiter != ',')
        wf_term_print(stdout,
                      s->delimiter == '\t' ? "    delimiter: \"\\t\"\n" : "    delimiter: \"%c\"\n",
                      s->delimiter);
    if (!s->header)
        wf_term_print(stdout, "    header: false\n");
    print_columns(s, label);
    print_schema(s);
    print_map(s, label);
}

wf_status wf_peek_csv(const char *path, wf_err *err)
{
    wf_survey s;
    int width = 4;
    wf_status rc = wf_csv_survey(path, &s, err);

    if (rc == WF_OK) {
        for (uint32_t i = 0; i < s.n_columns; i++)
            width = WF_MAX(width, (int)WF_MIN(strlen(s.columns[i].name), (size_t)32));
        wf_term_print(stdout, "%s  csv  %" PRIu64 " records  %u columns%s\n", path, s.records,
                      s.n_columns, s.header ? "" : ", no header");
        for (uint32_t i = 0; i < s.n_columns; i++)
            print_column(&s, &s.columns[i], width);
        if (s.n_columns > 1 && s.n_columns <= MOST_NAMED)
            print_suggestion(path, &s);
    }
    wf_survey_close(&s);
    return rc;
}
