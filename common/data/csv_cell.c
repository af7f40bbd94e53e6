/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/csv_cell.c */
#include "common/data/csv_cell.h"

#include <string.h>

/* The quote that closes the cell which opens at text[begin - 1]; n when there is none. */
static size_t closing(const char *text, size_t n, size_t begin)
{
    for (size_t at = begin; at < n; at += 2) { /* past a doubled one */
        const char *quote = memchr(text + at, '"', n - at);

        if (!quote)
            break;
        at = (size_t)(quote - text);
        if (at + 1 == n || text[at + 1] != '"')
            return at;
    }
    return n;
}

static wf_status next_quoted(const char *text, size_t n, char delimiter, size_t *at,
                             wf_csv_cell *out, wf_err *err)
{
    size_t begin = *at + 1, end = closing(text, n, begin), next = end + 1;

    while (next < n && text[next] != delimiter && wf_csv_is_blank(text[next]))
        next++;
    if (end == n || (next < n && text[next] != delimiter))
        return wf_fail(err, WF_INVALID, "quote whole cells, and double the quotes within",
                       "text follows the closing quote of a cell");
    *out = (wf_csv_cell){text + begin, end - begin, true};
    *at = next + 1;
    return WF_OK;
}

wf_status wf_csv_next(const char *text, size_t n, char delimiter, size_t *at, wf_csv_cell *out,
                      wf_err *err)
{
    size_t begin = *at, end;
    bool quote = false;

    while (begin < n && text[begin] != delimiter && wf_csv_is_blank(text[begin]))
        begin++;
    if (begin < n && text[begin] == '"') {
        *at = begin;
        return next_quoted(text, n, delimiter, at, out, err);
    }
    for (end = begin; end < n && text[end] != delimiter; end++) /* short: a call costs more */
        quote |= text[end] == '"';
    *at = end + 1;
    while (end > begin && wf_csv_is_blank(text[end - 1]))
        end--;
    *out = (wf_csv_cell){text + begin, end - begin, false};
    if (quote)
        return wf_fail(err, WF_INVALID, "quote whole cells, and double the quotes within",
                       "a quote stands within a cell that is not quoted");
    return WF_OK;
}

size_t wf_csv_copy(const wf_csv_cell *c, char *out)
{
    size_t n = 0;

    for (size_t i = 0; i < c->n; i++) {
        out[n++] = c->text[i];
        if (c->quoted && c->text[i] == '"')
            i++;
    }
    out[n] = 0;
    return n;
}

size_t wf_csv_record_end(const char *text, size_t n, bool *quoted, uint64_t *lines)
{
    size_t at = 0;

    while (at < n) {
        const char *line = memchr(text + at, '\n', n - at);
        size_t end = line ? (size_t)(line - text) : n;

        for (const char *quote = text + at;
             (quote = memchr(quote, '"', (size_t)(text + end - quote))); quote++)
            *quoted = !*quoted;
        *lines += line != NULL;
        at = end + 1;
        if (line && !*quoted)
            return at;
    }
    return 0;
}

bool wf_csv_is_regular(const char *text, size_t n, char delimiter, uint32_t cells)
{
    size_t found = 1, quotes = 0;

    for (size_t at = 0; at < n;) {
        size_t end = n - at > UINT8_MAX ? at + UINT8_MAX : n;
        uint8_t d = 0, q = 0; /* bytes, which the compiler counts 16 or more at a time */

        for (; at < end; at++) {
            d = (uint8_t)(d + (text[at] == delimiter));
            q |= text[at] == '"';
        }
        found += d;
        quotes += q;
    }
    return found == cells && quotes == 0;
}

size_t wf_csv_count(const char *text, size_t n, char delimiter, bool *quoted)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        *quoted ^= text[i] == '"';
        count += text[i] == delimiter && !*quoted;
    }
    return count;
}
