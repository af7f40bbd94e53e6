/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/stock.c */
#include "common/data/stock.h"
#include "common/base/size.h"
#include "common/data/windows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { DIGEST_STATE = 576 /* bytes that the state of a hash takes, or so */ };
static const char BOM[] = "\xef\xbb\xbf";

/* One pass over one file after the other. */
typedef struct pass {
    wf_stock *stock;
    wf_stock_file *file;
    XXH3_state_t *digest;
    uint64_t at; /* of the file: bytes seen */
    uint64_t line;
    /* the record that has begun */
    char *text; /* of a header, as far as it was seen */
    size_t bytes;
    uint64_t lines;
    char first;
    bool quoted;
    size_t delimiters;
    bool in_quotes; /* as far as they were counted */
    bool too_large; /* a block is: the pass is made again with fewer records to a block */
} pass;

static uint64_t place_of(const pass *p)
{
    return p->file->base + (p->at - p->bytes - p->file->skip);
}

wf_status wf_stock_add_block(wf_stock *s, wf_stock_block b, wf_err *err)
{
    if (s->n_blocks == s->room) {
        size_t room = WF_MAX(2 * s->room, (size_t)64);
        wf_stock_block *more = realloc(s->blocks, room * sizeof *more);

        if (!more)
            return wf_fail_nomem(err, room * sizeof *more);
        s->blocks = more;
        s->room = room;
    }
    s->blocks[s->n_blocks++] = b;
    return WF_OK;
}

/* A record begins; it may be the first of a block. */
static wf_status begin_record(pass *p, wf_err *err)
{
    wf_stock *s = p->stock;
    uint64_t here = place_of(p), begun = s->n_blocks ? s->blocks[s->n_blocks - 1].begin : 0;
    bool full = s->block ? s->records % s->block == 0
                         : here - begun >= WF_STOCK_BLOCK || s->records == WF_STOCK_MOST_RECORDS;

    if (s->n_blocks && here - begun > WF_STOCK_LARGEST && s->block > 1)
        p->too_large = true;
    if (s->n_blocks && !full)
        return WF_OK;
    if (s->n_blocks && !s->block)
        s->block = s->records;
    if (s->n_blocks)
        s->blocks[s->n_blocks - 1].end = here;
    return wf_stock_add_block(
        s, (wf_stock_block){.begin = here, .line = p->line, .file = (uint32_t)(p->file - s->files)},
        err);
}

static bool is_blank(const wf_record_form *f, char first, size_t n)
{
    if (n == 1 || (n == 2 && first == '\r'))
        return !f->keeps_empty;
    return f->comment && first == f->comment;
}

bool wf_record_is_one(const wf_record_form *f, const char *text, size_t n)
{
    bool quoted = false;

    return !is_blank(f, text[0], n) &&
           (!f->count || f->count(text, n, f->delimiter, &quoted) + 1 == f->cells);
}

/* The record that ends is none of the text. */
static void skip_record(pass *p)
{
    wf_stock *s = p->stock;

    if (s->skipped++ == 0) {
        s->skipped_file = (uint32_t)(p->file - s->files);
        s->skipped_line = p->line;
    }
}

static wf_status keep_header(pass *p, const char *text, size_t n, wf_err *err)
{
    char *more = realloc(p->text, p->bytes + n + 1);

    if (!more)
        return wf_fail_nomem(err, p->bytes + n);
    p->text = more;
    memcpy(more + p->bytes, text, n);
    more[p->bytes + n] = 0;
    return WF_OK;
}

/* The file's first record that is not blank: the text begins behind it. */
static void end_header(pass *p)
{
    wf_stock_file *f = p->file;
    size_t n = p->bytes;

    while (n > 0 && (p->text[n - 1] == '\n' || p->text[n - 1] == '\r'))
        n--;
    if (p->stock->form.cells == 0)
        p->stock->form.cells = p->delimiters + 1;
    f->header = p->text;
    f->header_bytes = n;
    p->text = NULL;
    f->skip = p->at;
    f->lines = p->line - 1;
}

static wf_status too_long(const pass *p, wf_err *err)
{
    return wf_fail(
        err, WF_INVALID, p->quoted ? "close the quotes that open there" : "cut it into lines",
        "%s:%" PRIu64 ": a record of more than %d bytes", p->file->path, p->line, WF_STOCK_RECORD);
}

/* Nothing is known yet of the record that comes next. */
static void begin_text(pass *p)
{
    p->bytes = p->lines = p->delimiters = 0;
    p->quoted = p->in_quotes = false;
}

/* n more bytes of the record that has begun, which end it or not. */
static wf_status take_part(pass *p, const char *text, size_t n, bool ends, uint64_t lines,
                           wf_err *err)
{
    const wf_record_form *form = &p->stock->form;
    bool header = form->header && !p->file->header, blank;

    if (p->bytes == 0)
        p->first = text[0];
    if (header)
        WF_TRY(keep_header(p, text, n, err));
    if (form->count)
        p->delimiters += form->count(text, n, form->delimiter, &p->in_quotes);
    p->bytes += n;
    p->lines += lines;
    p->at += n;
    if (p->bytes > WF_STOCK_RECORD)
        return too_long(p, err);
    if (!ends)
        return WF_OK;
    blank = is_blank(form, p->first, p->bytes);
    if (!blank && !header && form->count && p->delimiters + 1 != form->cells) {
        skip_record(p);
    } else if (!blank && !header) {
        WF_TRY(begin_record(p, err));
        p->stock->records++;
    }
    p->line += p->lines;
    if (!blank && header)
        end_header(p);
    begin_text(p);
    return WF_OK;
}

static wf_status take_piece(void *arg, const char *text, size_t n, wf_err *err)
{
    pass *p = arg;

    XXH3_64bits_update(p->digest, text, n);
    if (p->at == 0 && n >= 3 && memcmp(text, BOM, 3) == 0) {
        text += 3;
        n -= 3;
        p->at = p->file->skip = 3;
    }
    while (n > 0 && !p->too_large) {
        uint64_t lines = 0;
        size_t k = p->stock->form.end(text, n, &p->quoted, &lines);

        WF_TRY(take_part(p, text, k ? k : n, k > 0, lines, err));
        text += k ? k : n;
        n -= k ? k : n;
    }
    return WF_OK;
}

static wf_status pass_file(pass *p, wf_stock_file *f, uint64_t base, wf_err *err)
{
    wf_status rc;

    free(f->header);
    f->header = NULL;
    f->skip = f->lines = 0;
    f->base = base;
    f->first = p->stock->records;
    p->file = f;
    p->at = 0;
    p->line = 1;
    begin_text(p);
    rc = wf_ranges_scan(f->ranges, take_piece, p, err);
    if (rc == WF_OK && p->quoted)
        rc = wf_fail(err, WF_INVALID, NULL, "%s:%" PRIu64 ": quotes that open there do not close",
                     f->path, p->line);
    f->adds_end = p->bytes > 0 || !p->stock->form.keeps_empty;
    if (rc == WF_OK && p->bytes && !p->too_large) /* the last line has no end */
        rc = take_part(p, "\n", 1, true, 1, err);
    else
        p->at += f->adds_end;
    f->bytes = p->at - f->skip;
    return rc;
}

static wf_status pass_all(wf_stock *s, bool *again, wf_err *err)
{
    pass p = {.stock = s, .digest = XXH3_createState()};
    uint64_t base = 0;
    wf_status rc = WF_OK;

    if (!p.digest || XXH3_64bits_reset(p.digest) == XXH_ERROR)
        rc = wf_fail_nomem(err, DIGEST_STATE);
    s->records = s->n_blocks = s->skipped = 0;
    for (uint32_t i = 0; rc == WF_OK && i < s->n_files && !p.too_large; i++) {
        rc = pass_file(&p, &s->files[i], base, err);
        base += s->files[i].bytes;
    }
    free(p.text);
    s->digest = rc == WF_OK ? XXH3_64bits_digest(p.digest) : 0;
    XXH3_freeState(p.digest);
    *again = p.too_large;
    if (rc != WF_OK || p.too_large)
        return rc;
    if (s->records == 0 && s->skipped)
        return wf_fail(err, WF_INVALID, "check data.delimiter",
                       "%s holds no records of %zu columns", s->files[0].path, s->form.cells);
    if (s->records == 0)
        return wf_fail(err, WF_INVALID, NULL, "%s holds no records", s->files[0].path);
    if (!s->block)
        s->block = s->records;
    s->blocks[s->n_blocks - 1].end = base;
    return WF_OK;
}

wf_status wf_stock_take(wf_stock *s, const char *const paths[], uint32_t n,
                        const wf_record_form *form, wf_err *err)
{
    bool again = true;

    s->form = *form;
    s->files = calloc(n + 1, sizeof *s->files);
    if (!s->files)
        return wf_fail_nomem(err, n * sizeof *s->files);
    for (; s->n_files < n; s->n_files++) {
        wf_stock_file *f = &s->files[s->n_files];

        f->path = strdup(paths[s->n_files]);
        if (!f->path)
            return wf_fail_nomem(err, strlen(paths[s->n_files]));
        WF_TRY(wf_ranges_open(f->path, &f->ranges, err));
    }
    while (again) {
        WF_TRY((form->window.length ? wf_windows_take : pass_all)(s, &again, err));
        if (again) /* the records at the beginning are the shortest */
            s->block = WF_MAX(s->block / 16, (uint64_t)1);
    }
    return WF_OK;
}

void wf_stock_close(wf_stock *s)
{
    for (uint32_t i = 0; s->files && i <= s->n_files; i++) { /* one more may have begun */
        wf_ranges_close(&s->files[i].ranges);
        free(s->files[i].header);
        free(s->files[i].path);
    }
    free(s->files);
    free(s->blocks);
    *s = (wf_stock){0};
}

size_t wf_stock_bytes(const wf_stock *s, size_t block)
{
    return (size_t)(s->blocks[block].end - s->blocks[block].begin);
}

uint64_t wf_stock_records(const wf_stock *s, size_t block)
{
    return WF_MIN(s->block, s->records - block * s->block);
}

/* The text of one file, with the line end behind it. */
static wf_status read_file(const wf_stock_file *f, uint64_t at, size_t n, char *out, wf_err *err)
{
    bool end = f->adds_end && at + n == f->base + f->bytes;

    if (end)
        out[--n] = '\n';
    return n ? wf_ranges_read(f->ranges, f->skip + (at - f->base), n, out, err) : WF_OK;
}

wf_status wf_stock_read(wf_stock *s, size_t block, char *out, wf_err *err)
{
    uint64_t at = s->blocks[block].begin, end = s->blocks[block].end;

    for (uint32_t i = s->blocks[block].file; at < end; i++) {
        const wf_stock_file *f = &s->files[i];
        size_t n = (size_t)(WF_MIN(end, f->base + f->bytes) - at);

        WF_TRY(read_file(f, at, n, out, err));
        out += n;
        at += n;
    }
    return WF_OK;
}

const char *wf_stock_place(const wf_stock *s, size_t block, const char *text, size_t at,
                           uint64_t *line)
{
    const wf_stock_block *b = &s->blocks[block];
    uint32_t i = b->file;
    size_t from = 0;

    *line = b->line;
    for (; i + 1 < s->n_files && b->begin + at >= s->files[i + 1].base; i++) {
        from = (size_t)(s->files[i + 1].base - b->begin);
        *line = s->files[i + 1].lines + 1;
    }
    for (; from < at; from++)
        *line += text[from] == '\n';
    return s->files[i].path;
}

bool wf_stock_find(const wf_stock *s, size_t block, const char *text, uint32_t begins[])
{
    size_t n = wf_stock_bytes(s, block), at = 0;
    uint64_t records = wf_stock_records(s, block), found = 0, lines = 0;

    begins[records] = (uint32_t)n;
    if (s->form.window.length)
        return wf_windows_find(s, block, text, begins);
    while (at < n) {
        bool quoted = false;
        size_t k = s->form.end(text + at, n - at, &quoted, &lines);

        if (k == 0)
            break;
        if (wf_record_is_one(&s->form, text + at, k)) {
            if (found == records)
                break;
            begins[found++] = (uint32_t)at;
        }
        at += k;
    }
    return at == n && found == records;
}

size_t wf_record_trim(const wf_record_form *f, const char *text, size_t n)
{
    bool quoted = false;
    uint64_t lines = 0;

    if (f->comment || f->count) /* lines that are not empty may follow it */
        n = f->end(text, n, &quoted, &lines);
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
        n--;
    return n;
}

static wf_status each_of_block(wf_stock *s, size_t block, char *text,
                               wf_status (*take)(void *arg, const char *text, size_t n,
                                                 wf_err *err),
                               void *arg, wf_err *err)
{
    size_t n = wf_stock_bytes(s, block);

    WF_TRY(wf_stock_read(s, block, text, err));
    for (size_t at = 0, k; at < n; at += k) {
        bool quoted = false;
        uint64_t line = 0;
        const char *path;
        wf_status rc;

        k = s->form.end(text + at, n - at, &quoted, &line);
        if (k == 0)
            break; /* it was there when stock was taken */
        if (!wf_record_is_one(&s->form, text + at, k))
            continue;
        rc = take(arg, text + at, wf_record_trim(&s->form, text + at, k), err);
        if (rc == WF_OK)
            continue;
        path = wf_stock_place(s, block, text, at, &line);
        return wf_err_wrap(err, rc, "%s:%" PRIu64, path, line);
    }
    return WF_OK;
}

wf_status wf_stock_each(wf_stock *s,
                        wf_status (*take)(void *arg, const char *text, size_t n, wf_err *err),
                        void *arg, wf_err *err)
{
    size_t most = 1;
    char *text;
    wf_status rc = WF_OK;

    for (size_t i = 0; i < s->n_blocks; i++)
        most = WF_MAX(most, wf_stock_bytes(s, i));
    text = malloc(most);
    if (!text)
        return wf_fail_nomem(err, most);
    for (size_t i = 0; rc == WF_OK && i < s->n_blocks; i++)
        rc = each_of_block(s, i, text, take, arg, err);
    free(text);
    return rc;
}
