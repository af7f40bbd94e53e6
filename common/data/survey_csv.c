/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/survey_csv.c - what the columns of a csv file hold. */
#include "common/base/size.h"
#include "common/data/csv_cell.h"
#include "common/data/formats.h"
#include "common/data/number.h"
#include "common/data/paths.h"
#include "common/data/ranges.h"
#include "common/data/stock.h"
#include "common/data/survey.h"
#include "common/data/vocabulary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { MOST_COLUMNS = 1 << 16 };

static char guess_delimiter(const char *row, size_t n)
{
    static const char known[] = ",;\t|";
    size_t most = 0;
    char best = ',';

    for (const char *c = known; *c; c++) {
        size_t count = 0;

        for (size_t i = 0; i < n; i++)
            count += row[i] == *c;
        if (count > most) {
            most = count;
            best = *c;
        }
    }
    return best;
}

/* Takes one cell after the other of a row. */
typedef wf_status take_cell(wf_survey *s, uint32_t column, const wf_csv_cell *c, wf_err *err);

static wf_status each_cell(wf_survey *s, const char *row, size_t n, uint32_t *count,
                           take_cell *take, wf_err *err)
{
    *count = 0;
    for (size_t at = 0; at <= n; ++*count) {
        wf_csv_cell c;

        if (*count == MOST_COLUMNS)
            return wf_fail(err, WF_INVALID, NULL, "more than %d columns", MOST_COLUMNS);
        WF_TRY(wf_csv_next(row, n, s->delimiter, &at, &c, err));
        if (take)
            WF_TRY(take(s, *count, &c, err));
    }
    return WF_OK;
}

static wf_status copy_cell(wf_survey *s, const wf_csv_cell *c, const char **out, wf_err *err)
{
    char *text = wf_arena_alloc(s->arena, c->n + 1);

    if (!text)
        return wf_fail_nomem(err, c->n + 1);
    wf_csv_copy(c, text);
    *out = text;
    return WF_OK;
}

static wf_status take_name(wf_survey *s, uint32_t column, const wf_csv_cell *c, wf_err *err)
{
    wf_survey_column *to = &s->columns[column];
    double number;

    if (wf_number_f64(c->text, c->n, &number))
        s->header = false;
    return copy_cell(s, c, &to->name, err);
}

/* Counting ends for a column at a word that is none of a vocabulary, or one too many. */
static wf_status take_word(wf_survey *s, wf_survey_column *to, const wf_csv_cell *c, wf_err *err)
{
    char text[2 * WF_LEARNT_WORD + 1];
    wf_status rc = WF_FULL;
    size_t n = 0;

    if (to->uncounted)
        return WF_OK;
    if (!to->seen)
        WF_TRY(wf_vocabulary_new(&to->seen, err));
    if (c->n < sizeof text)
        n = wf_csv_copy(c, text);
    if (n > 0 && wf_vocabulary_find(to->seen, text, n) >= 0)
        return WF_OK;
    if (n > 0 && s->distinct < WF_SURVEY_DISTINCT)
        rc = wf_vocabulary_count(to->seen, text, n, NULL);
    if (rc == WF_NOMEM)
        return wf_fail_nomem(err, n);
    to->uncounted = rc != WF_OK;
    to->distinct++;
    s->distinct++;
    to->more_words = to->uncounted || to->distinct > WF_SURVEY_WORDS;
    if (to->n_words == WF_SURVEY_WORDS || c->n >= sizeof text)
        return WF_OK;
    return copy_cell(s, c, &to->words[to->n_words++], err);
}

static wf_status take_value(wf_survey *s, uint32_t column, const wf_csv_cell *c, wf_err *err)
{
    wf_survey_column *to = &s->columns[column];
    int64_t whole;
    double number;

    if (column >= s->n_columns) /* the caller says so */
        return WF_OK;
    if (c->n == 0) {
        to->empty++;
        return WF_OK;
    }
    if (!wf_number_f64(c->text, c->n, &number)) {
        WF_TRY(wf_distinct_add(&to->values, XXH3_64bits(c->text, c->n), s->exact, err));
        return take_word(s, to, c, err);
    }
    to->wholes += wf_number_i64(c->text, c->n, &whole);
    return wf_survey_number(s, to, number, err);
}

/* Columns by the first row; it is a header if no cell of it is a number. */
static wf_status take_first(wf_survey *s, const char *row, size_t n, wf_err *err)
{
    s->delimiter = guess_delimiter(row, n);
    WF_TRY(each_cell(s, row, n, &s->n_columns, NULL, err));
    WF_TRY(wf_survey_columns(s, s->n_columns, err));
    s->header = true;
    WF_TRY(each_cell(s, row, n, &s->n_columns, take_name, err));
    for (uint32_t i = 0; !s->header && i < s->n_columns; i++) {
        s->columns[i].name = wf_arena_printf(s->arena, "%u", i + 1);
        if (!s->columns[i].name)
            return wf_fail_nomem(err, 16);
    }
    return WF_OK;
}

static wf_status take_row(void *arg, const char *row, size_t n, wf_err *err)
{
    wf_survey *s = arg;
    uint32_t count;

    if (!s->columns) {
        WF_TRY(take_first(s, row, n, err));
        if (s->header)
            return WF_OK;
    }
    WF_TRY(each_cell(s, row, n, &count, take_value, err));
    if (count != s->n_columns)
        return wf_fail(err, WF_INVALID, "quote cells that hold the delimiter",
                       "a row of %u columns, where there are %u", count, s->n_columns);
    s->records++;
    return WF_OK;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

wf_status wf_csv_survey(const char *path, wf_survey *out, wf_err *err)
{
    wf_stock stock = {0};
    wf_status rc;

    *out = (wf_survey){.arena = wf_arena_new(0)};
    if (!out->arena)
        return wf_fail_nomem(err, sizeof *out);
    rc = wf_stock_take(&stock, &path, 1, &(wf_record_form){.end = wf_csv_record_end}, err);
    if (rc == WF_OK)
        rc = wf_stock_each(&stock, take_row, out, err);
    wf_stock_close(&stock);
    for (uint32_t i = 0; rc == WF_OK && i < out->n_columns; i++)
        qsort(out->columns[i].words, out->columns[i].n_words, sizeof out->columns[i].words[0],
              by_text);
    if (rc == WF_OK && out->records == 0)
        return wf_fail(err, WF_INVALID, NULL, "%s holds no records", path);
    return rc;
}

/* ---- the first row alone ---- */

/* What has come of a file until its first row that is not empty is whole. */
typedef struct first_row {
    char *text; /* [room] */
    size_t n, end;
    bool quoted;
} first_row;

enum { MOST_ROW = 1 << 20 };

static wf_status take_piece(void *arg, const char *text, size_t n, wf_err *err)
{
    first_row *r = arg;
    size_t taken = WF_MIN(n, MOST_ROW - r->n), end;
    uint64_t lines = 0;

    (void)err;
    for (; r->n == 0 && taken > 0 && (*text == '\n' || *text == '\r'); text++)
        taken--;
    memcpy(r->text + r->n, text, taken);
    end = wf_csv_record_end(r->text + r->n, taken, &r->quoted, &lines);
    r->end = end ? r->n + end : 0;
    r->n += taken;
    return r->end || r->n == MOST_ROW ? WF_FULL : WF_OK; /* no more is wanted */
}

static wf_status read_first(const char *path, first_row *r, wf_err *err)
{
    wf_ranges *from = NULL;
    wf_status rc;

    WF_TRY(wf_ranges_open(path, &from, err));
    rc = wf_ranges_scan(from, take_piece, r, err);
    wf_ranges_close(&from);
    if (rc != WF_OK && rc != WF_FULL)
        return rc;
    if (rc == WF_FULL && !r->end)
        return wf_fail(err, WF_INVALID, "check that it is csv",
                       "%s: its first row does not end within %d bytes", path, MOST_ROW);
    if (!r->end)
        r->end = r->n; /* a file of one row without a line end */
    while (r->end > 0 && (r->text[r->end - 1] == '\n' || r->text[r->end - 1] == '\r'))
        r->end--;
    return r->end ? WF_OK : wf_fail(err, WF_INVALID, NULL, "%s holds no records", path);
}

static wf_status read_head(const char *path, wf_survey *s, wf_err *err)
{
    static const char BOM[] = "\xef\xbb\xbf";
    first_row row = {.text = malloc(MOST_ROW)};
    wf_status rc = row.text ? read_first(path, &row, err) : wf_fail_nomem(err, MOST_ROW);
    size_t skip = 0;

    if (rc == WF_OK && row.end > strlen(BOM) && memcmp(row.text, BOM, strlen(BOM)) == 0)
        skip = strlen(BOM);
    if (rc == WF_OK)
        rc = wf_err_wrap(err, take_first(s, row.text + skip, row.end - skip, err), "%s:1", path);
    free(row.text);
    return rc;
}

wf_status wf_csv_read_head(const char *path, wf_arena *a, wf_csv_head *out, wf_err *err)
{
    wf_survey s = {.arena = a};
    const char *const *files = NULL;
    const char **names;
    size_t n = 0;

    *out = (wf_csv_head){0};
    WF_TRY(wf_paths_expand(&path, 1, false, a, &files, &n, err));
    WF_TRY(read_head(files[0], &s, err));
    names = wf_arena_array(a, s.n_columns, sizeof *names);
    if (!names)
        return wf_fail_nomem(err, s.n_columns * sizeof *names);
    for (uint32_t i = 0; i < s.n_columns; i++)
        names[i] = s.columns[i].name;
    *out = (wf_csv_head){names, s.n_columns, s.header, s.delimiter};
    return WF_OK;
}
