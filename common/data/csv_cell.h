/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/csv_cell.h - the cells of a record of comma-separated values (RFC 4180, section 2).
 * For this room only.
 *
 * A cell that holds delimiters, line ends or quotes is quoted as a whole, and its quotes are
 * doubled. Line ends are LF or CRLF. Blanks around an unquoted cell do not count.
 */
#ifndef WF_DATA_CSV_CELL_H
#define WF_DATA_CSV_CELL_H

#include "common/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the text of a cell is, without its quotes. */
typedef struct wf_csv_cell {
    const char *text;
    size_t n;
    bool quoted; /* quotes within it are still doubled */
} wf_csv_cell;

/* The cell that begins at text[*at]; *at becomes the begin of the next, n + 1 after the last.
 * Errors: WF_INVALID for a quote within an unquoted cell, or text behind a quoted one. */
WF_MUST_USE wf_status wf_csv_next(const char *text, size_t n, char delimiter, size_t *at,
                                  wf_csv_cell *out, wf_err *err);
/* Copies a cell with single quotes into out, which has room for c->n + 1, and ends it with 0;
 * returns its length. */
size_t wf_csv_copy(const wf_csv_cell *c, char *out);
/* The end of a record, as wf_record_end (stock.h). */
size_t wf_csv_record_end(const char *text, size_t n, bool *quoted, uint64_t *lines);

/* Whether a record has so many cells and no quote: one fast look at all of its bytes. Each
 * delimiter in it ends a cell, so that any of them is found without reading those before it. */
bool wf_csv_is_regular(const char *text, size_t n, char delimiter, uint32_t cells);
static inline bool wf_csv_is_blank(char c)
{
    return c == ' ' || c == '\t';
}
/* As wf_csv_next, in a regular record. */
static inline wf_csv_cell wf_csv_next_regular(const char *text, size_t n, char delimiter,
                                              size_t *at)
{
    size_t begin = *at, end = begin;

    while (end < n && text[end] != delimiter)
        end++;
    *at = end + 1;
    while (begin < end && wf_csv_is_blank(text[begin]))
        begin++;
    while (end > begin && wf_csv_is_blank(text[end - 1]))
        end--;
    return (wf_csv_cell){text + begin, end - begin, false};
}

/* The delimiters between cells in a piece of a record; *quoted goes on from one to the next. */
size_t wf_csv_count(const char *text, size_t n, char delimiter, bool *quoted);

#endif
