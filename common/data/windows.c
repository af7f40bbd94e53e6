/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/windows.c */
#include "common/data/windows.h"
#include "common/base/size.h"
#include "common/data/tokens.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { DIGEST_STATE = 576 /* bytes that the state of a hash takes, or so */ };
static const char BOM[] = "\xef\xbb\xbf";

/* ---- one pass over one file after the other ---- */

typedef struct pass {
    wf_stock *stock;
    wf_stock_file *file;
    XXH3_state_t *digest;
    wf_token_scan scan;
    uint64_t tokens, most_tokens; /* of the file; of all files the most */
    wf_token_place *open;         /* [n_open] where windows begin that have not ended, in turn */
    uint64_t n_open;
    bool too_large; /* a block is: the pass is made again with fewer windows to a block */
} pass;

/* A window has its last token: it is a record. */
static wf_status end_window(pass *p, const wf_token_place *first, uint64_t end, wf_err *err)
{
    wf_stock *s = p->stock;
    uint64_t begin = p->file->base + first->begin,
             begun = s->n_blocks ? s->blocks[s->n_blocks - 1].begin : 0;
    bool full = s->block ? s->records % s->block == 0
                         : begin - begun >= WF_STOCK_BLOCK || s->records == WF_STOCK_MOST_RECORDS;

    end += p->file->base;
    if (end - begin > WF_STOCK_LARGEST)
        return wf_fail(err, WF_INVALID, "lower sequence_length, or look what is in the file there",
                       "the window of %" PRIu64 " tokens that ends here takes more than %d bytes",
                       s->form.window.length, WF_STOCK_LARGEST);
    if (s->n_blocks == 0 || full) {
        if (s->n_blocks && !s->block)
            s->block = s->records;
        WF_TRY(wf_stock_add_block(s,
                                  (wf_stock_block){.begin = begin,
                                                   .line = first->line,
                                                   .file = (uint32_t)(p->file - s->files)},
                                  err));
        begun = begin;
    }
    s->blocks[s->n_blocks - 1].end = end;
    s->records++;
    p->too_large = end - begun > WF_STOCK_LARGEST;
    if (p->too_large && !s->block)
        s->block = s->records;
    return WF_OK;
}

static wf_status take_token(void *arg, const wf_token_place *token, wf_err *err)
{
    pass *p = arg;
    const wf_window_form *form = &p->stock->form.window;
    uint64_t at = p->tokens++;

    if (token->end - token->begin > WF_STOCK_RECORD)
        return wf_fail(err, WF_INVALID, "put blanks between its words, or write split: bytes",
                       "a word of more than %d bytes", WF_STOCK_RECORD);
    if (at % form->stride == 0)
        p->open[at / form->stride % p->n_open] = *token;
    if (p->too_large || at < form->length || (at - form->length) % form->stride != 0)
        return WF_OK;
    return end_window(p, &p->open[(at - form->length) / form->stride % p->n_open], token->end, err);
}

static wf_status take_piece(void *arg, const char *text, size_t n, wf_err *err)
{
    pass *p = arg;
    wf_status rc;

    XXH3_64bits_update(p->digest, text, n);
    if (p->file->bytes == 0 && n >= 3 && memcmp(text, BOM, 3) == 0) {
        text += 3;
        n -= 3;
        p->file->skip = 3;
    }
    p->file->bytes += n;
    rc = wf_token_scan_piece(&p->scan, text, n, take_token, p, err);
    return wf_err_wrap(err, rc, "%s:%" PRIu64, p->file->path, p->scan.line);
}

static wf_status pass_file(pass *p, wf_stock_file *f, uint64_t base, wf_err *err)
{
    wf_status rc;

    *f = (wf_stock_file){.ranges = f->ranges,
                         .path = f->path,
                         .base = base,
                         .first = p->stock->records,
                         .adds_end = true};
    p->file = f;
    p->tokens = 0;
    wf_token_scan_begin(&p->scan, &p->stock->form.window.tokens);
    WF_TRY(wf_ranges_scan(f->ranges, take_piece, p, err));
    rc = wf_token_scan_end(&p->scan, take_token, p, err);
    WF_TRY(wf_err_wrap(err, rc, "%s:%" PRIu64, f->path, p->scan.line));
    f->bytes++; /* the line end that stands behind each file */
    p->most_tokens = WF_MAX(p->most_tokens, p->tokens);
    return WF_OK;
}

static wf_status no_window(const pass *p, wf_err *err)
{
    const wf_stock *s = p->stock;

    return wf_fail(err, WF_INVALID, "lower sequence_length, or give more text",
                   "%s: %" PRIu64 " tokens%s, and a window takes %" PRIu64
                   ": sequence_length and the token behind it",
                   s->files[0].path, p->most_tokens, s->n_files > 1 ? " in the longest file" : "",
                   s->form.window.length + 1);
}

static wf_status pass_all(pass *p, wf_err *err)
{
    wf_stock *s = p->stock;
    uint64_t base = 0;

    s->records = s->n_blocks = 0;
    for (uint32_t i = 0; i < s->n_files && !p->too_large; i++) {
        WF_TRY(pass_file(p, &s->files[i], base, err));
        base += s->files[i].bytes;
    }
    s->digest = XXH3_64bits_digest(p->digest);
    if (p->too_large)
        return WF_OK;
    if (s->records == 0)
        return no_window(p, err);
    if (!s->block)
        s->block = s->records;
    return WF_OK;
}

wf_status wf_windows_take(wf_stock *s, bool *again, wf_err *err)
{
    const wf_window_form *form = &s->form.window;
    pass p = {.stock = s, .digest = XXH3_createState(), .n_open = form->length / form->stride + 1};
    wf_status rc;

    p.open = calloc(p.n_open, sizeof *p.open);
    if (!p.digest || !p.open || XXH3_64bits_reset(p.digest) == XXH_ERROR)
        rc = wf_fail_nomem(err, p.n_open * sizeof *p.open + DIGEST_STATE);
    else
        rc = pass_all(&p, err);
    *again = p.too_large;
    free(p.open);
    XXH3_freeState(p.digest);
    return rc;
}

/* ---- windows of a block ---- */

typedef struct finding {
    uint32_t *begins;
    uint64_t stride, base, tokens, found, wanted; /* of one file's part of the block */
} finding;

static wf_status take_begin(void *arg, const wf_token_place *token, wf_err *err)
{
    finding *f = arg;

    (void)err;
    if (f->tokens++ % f->stride == 0 && f->found < f->wanted)
        f->begins[f->found++] = (uint32_t)(f->base + token->begin);
    return f->found < f->wanted ? WF_OK : WF_FULL; /* no more are wanted */
}

bool wf_windows_find(const wf_stock *s, size_t block, const char *text, uint32_t begins[])
{
    uint64_t record = block * s->block, end = record + wf_stock_records(s, block),
             base = s->blocks[block].begin;
    size_t at = 0, n = wf_stock_bytes(s, block);

    for (uint32_t i = s->blocks[block].file; record < end; i++) {
        const wf_stock_file *f = &s->files[i];
        uint64_t after = i + 1 < s->n_files ? s->files[i + 1].first : s->records;
        finding it = {.begins = begins,
                      .stride = s->form.window.stride,
                      .wanted = WF_MIN(end, after) - record};
        wf_token_scan scan;
        wf_status rc;

        if (f->base > base)
            at = (size_t)(f->base - base);
        it.base = at;
        wf_token_scan_begin(&scan, &s->form.window.tokens);
        rc = it.wanted ? wf_token_scan_piece(&scan, text + at, n - at, take_begin, &it, NULL)
                       : WF_FULL;
        if (rc == WF_OK)
            rc = wf_token_scan_end(&scan, take_begin, &it, NULL);
        if ((rc != WF_OK && rc != WF_FULL) || it.found < it.wanted)
            return false;
        begins += it.found;
        record += it.found;
    }
    return true;
}
