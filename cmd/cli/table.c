/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/table.c */
#include "cmd/cli/table.h"
#include "common/base/text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A copy fit for a terminal; NULL when there is no memory. */
static char *copy_of(const char *text)
{
    size_t size = 4 * strlen(text) + 1; /* each byte as \x1b at most */
    char *copy = malloc(size);

    if (copy)
        wf_text_escape(text, false, copy, size);
    return copy;
}

void wf_rows_add(wf_rows *t, const char *const cell[], size_t n)
{
    if (t->n == t->room) {
        size_t room = 2 * t->room + 8;
        void *cells = realloc(t->cells, room * sizeof *t->cells);

        if (!cells) {
            t->failed = 1;
            return;
        }
        t->cells = cells;
        t->room = room;
    }
    for (size_t i = 0; i < WF_MAX_COLUMNS; i++) {
        t->cells[t->n][i] = i < n ? copy_of(cell[i] ? cell[i] : "-") : NULL;
        t->failed |= i < n && !t->cells[t->n][i];
    }
    t->n++;
}

/* Columns that a text takes: bytes that begin a UTF-8 character. */
static size_t width(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += ((uint8_t)*text & 0xc0) != 0x80;
    return n;
}

static void print_row(const wf_rows *t, size_t row, const size_t widths[], FILE *f)
{
    size_t last = 0;

    for (size_t i = 0; i < WF_MAX_COLUMNS; i++)
        if (t->cells[row][i] && t->cells[row][i][0])
            last = i;
    for (size_t i = 0; i <= last; i++) {
        const char *text = t->cells[row][i] ? t->cells[row][i] : "";

        fputs(text, f);
        for (size_t pad = width(text); i < last && pad < widths[i] + 2; pad++)
            fputc(' ', f);
    }
    fputc('\n', f);
}

wf_status wf_rows_print(wf_rows *t, FILE *f, wf_err *err)
{
    size_t widths[WF_MAX_COLUMNS] = {0};
    wf_status rc = t->failed ? wf_fail_nomem(err, t->n * sizeof *t->cells) : WF_OK;

    for (size_t i = 0; rc == WF_OK && i < t->n; i++)
        for (size_t k = 0; k < WF_MAX_COLUMNS && t->cells[i][k]; k++)
            if (width(t->cells[i][k]) > widths[k])
                widths[k] = width(t->cells[i][k]);
    for (size_t i = 0; rc == WF_OK && i < t->n; i++)
        print_row(t, i, widths, f);
    wf_rows_close(t);
    return rc;
}

void wf_rows_close(wf_rows *t)
{
    for (size_t i = 0; i < t->n; i++)
        for (size_t k = 0; k < WF_MAX_COLUMNS; k++)
            free(t->cells[i][k]);
    free(t->cells);
    *t = (wf_rows){0};
}
