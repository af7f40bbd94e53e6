/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/text.c */
#include "common/data/text.h"
#include "common/base/size.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 16 << 20 /* bytes of text */, MOST_BLOCKS = 1024 };

/* The text of a block, while it is held. */
typedef struct held {
    size_t block;
    char *text;
    uint32_t *begins; /* [records + 1] in text */
    uint32_t pins;
    uint64_t used; /* when last */
} held;

struct wf_text {
    const wf_text_format *format;
    void *plan;
    wf_stock stock;
    uint64_t window;
    size_t largest; /* bytes of a block */

    pthread_mutex_t lock; /* of what follows, and of the stock's files */
    held *holds;          /* [n_holds]; without text: free */
    uint32_t n_holds;
    uint64_t uses;
};

static wf_status check_headers(const wf_stock *s, wf_err *err)
{
    const wf_stock_file *first = &s->files[0];

    for (uint32_t i = 1; i < s->n_files; i++) {
        const wf_stock_file *f = &s->files[i];

        if (!f->header || f->header_bytes != first->header_bytes ||
            memcmp(f->header, first->header, first->header_bytes) != 0)
            return wf_fail(err, WF_INVALID, "name files of one form",
                           "%s has another header than %s", f->path, first->path);
    }
    return WF_OK;
}

static wf_status make_room(wf_text *t, wf_err *err)
{
    size_t n = t->stock.n_blocks, all = 0;

    for (size_t i = 0; i < n; i++) {
        t->largest = WF_MAX(t->largest, wf_stock_bytes(&t->stock, i));
        all += wf_stock_bytes(&t->stock, i);
    }
    t->window = WF_MAX(WF_MIN(WINDOW / (all / n + 1), (size_t)MOST_BLOCKS), (size_t)1);
    t->n_holds = (uint32_t)WF_MIN(2 * t->window + 1, (uint64_t)n);
    t->holds = calloc(t->n_holds, sizeof *t->holds);
    return t->holds ? WF_OK : wf_fail_nomem(err, t->n_holds * sizeof *t->holds);
}

wf_status wf_text_open(const wf_text_format *format, const wf_dataset_spec *spec, wf_text **out,
                       wf_err *err)
{
    wf_text *t = calloc(1, sizeof *t);
    wf_record_form form = format->form;
    wf_status rc;

    *out = t;
    if (!t)
        return wf_fail_nomem(err, sizeof *t);
    t->format = format;
    pthread_mutex_init(&t->lock, NULL);
    form.header &= spec->header;
    form.count = spec->skips_bad_lines ? form.count : NULL;
    form.delimiter = spec->delimiter ? spec->delimiter : ',';
    form.cells = form.header ? 0 : spec->n_schema;
    rc = format->window ? format->window(spec, &form.window, err) : WF_OK;
    if (rc == WF_OK)
        rc = wf_stock_take(&t->stock, spec->files, (uint32_t)spec->n_files, &form, err);
    if (rc == WF_OK && form.header)
        rc = check_headers(&t->stock, err);
    if (rc == WF_OK)
        rc = format->plan(spec, &t->stock, &t->plan, err);
    if (rc == WF_OK)
        rc = make_room(t, err);
    if (rc != WF_OK)
        wf_text_close(out);
    return rc;
}

static void let_go(held *h)
{
    free(h->text);
    free(h->begins);
    *h = (held){0};
}

void wf_text_close(wf_text **text)
{
    wf_text *t = *text;

    *text = NULL;
    if (!t)
        return;
    for (uint32_t i = 0; t->holds && i < t->n_holds; i++)
        let_go(&t->holds[i]);
    free(t->holds);
    if (t->plan)
        t->format->free(t->plan);
    wf_stock_close(&t->stock);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

uint64_t wf_text_records(const wf_text *t)
{
    return t->stock.records;
}

uint64_t wf_text_digest(const wf_text *t)
{
    return t->stock.digest;
}

const char *wf_text_path(const wf_text *t)
{
    return t->stock.files[0].path;
}

wf_text_shape wf_text_shape_of(const wf_text *t, uint32_t field)
{
    return t->format->shape(t->plan, field);
}

wf_vocabulary *wf_text_words(const wf_text *t, uint32_t field, bool *learns)
{
    *learns = false;
    return t->format->words ? t->format->words(t->plan, field, learns) : NULL;
}

void wf_text_learnt(wf_text *t, uint32_t field)
{
    t->format->learnt(t->plan, field);
}

void wf_text_blocks(const wf_text *t, uint64_t *block, uint64_t *window)
{
    *block = t->stock.block;
    *window = t->window;
}

size_t wf_text_bytes(const wf_text *t)
{
    return t->n_holds * t->largest;
}

uint64_t wf_text_skipped(const wf_text *t, const char **path, uint64_t *line)
{
    *path = t->stock.files[t->stock.skipped_file].path;
    *line = t->stock.skipped_line;
    return t->stock.skipped;
}

bool wf_text_part(const wf_text *t, size_t i, const char **path, uint64_t *records)
{
    if (i >= t->stock.n_files)
        return false;
    *path = t->stock.files[i].path;
    *records = (i + 1 < t->stock.n_files ? t->stock.files[i + 1].first : t->stock.records) -
               t->stock.files[i].first;
    return true;
}

uint64_t wf_text_cut(const wf_text *t)
{
    return t->format->cut ? t->format->cut(t->plan) : 0;
}

/* ---- blocks ---- */

/* Finds the records of a block again; there must be as many as when stock was taken. */
static wf_status find_records(const wf_text *t, held *h, wf_err *err)
{
    if (wf_stock_find(&t->stock, h->block, h->text, h->begins))
        return WF_OK;
    return wf_fail(err, WF_INVALID, "leave data files as they are while a job runs",
                   "%s has changed since it was opened",
                   t->stock.files[t->stock.blocks[h->block].file].path);
}

static wf_status load(wf_text *t, held *h, size_t block, wf_err *err)
{
    size_t n = wf_stock_bytes(&t->stock, block);
    wf_status rc;

    let_go(h);
    h->block = block;
    h->text = malloc(n);
    h->begins = malloc((wf_stock_records(&t->stock, block) + 1) * sizeof *h->begins);
    if (!h->text || !h->begins)
        rc = wf_fail_nomem(err, n);
    else
        rc = wf_stock_read(&t->stock, block, h->text, err);
    if (rc == WF_OK)
        rc = find_records(t, h, err);
    if (rc != WF_OK)
        let_go(h);
    return rc;
}

/* The text of a block, pinned; the one used least gives way. Under the lock. */
static wf_status pin(wf_text *t, size_t block, held **out, wf_err *err)
{
    held *h = NULL;

    for (uint32_t i = 0; i < t->n_holds; i++) {
        held *it = &t->holds[i];

        if (it->text && it->block == block) {
            h = it;
            break;
        }
        if (!it->pins && (!h || it->used < h->used))
            h = it;
    }
    if (!h)
        return wf_fail(err, WF_NOMEM, NULL, "more than %u blocks of text are in use", t->n_holds);
    if (!h->text || h->block != block)
        WF_TRY(load(t, h, block, err));
    h->used = ++t->uses;
    h->pins++;
    *out = h;
    return WF_OK;
}

static wf_status pin_for(wf_text *t, uint64_t record, held **h, wf_err *err)
{
    size_t block = (size_t)(record / t->stock.block);
    wf_status rc = WF_OK;

    if (*h && (*h)->block == block)
        return WF_OK;
    pthread_mutex_lock(&t->lock);
    if (*h)
        (*h)->pins--;
    *h = NULL;
    rc = pin(t, block, h, err);
    pthread_mutex_unlock(&t->lock);
    return rc;
}

static void unpin(wf_text *t, held *h)
{
    pthread_mutex_lock(&t->lock);
    if (h)
        h->pins--;
    pthread_mutex_unlock(&t->lock);
}

/* ---- records ---- */

/* The bytes of record i of a block: a window ends where its tokens do, and only they are read. */
static size_t bytes_of(const wf_text *t, const held *h, uint64_t i)
{
    const uint32_t *begin = &h->begins[i];

    if (t->stock.form.window.length)
        return wf_stock_bytes(&t->stock, h->block) - *begin;
    return wf_record_trim(&t->stock.form, h->text + *begin, begin[1] - *begin);
}

static wf_status placed(const wf_text *t, const held *h, size_t at, wf_err *err, wf_status rc)
{
    uint64_t line;
    const char *path = wf_stock_place(&t->stock, h->block, h->text, at, &line);

    return wf_err_wrap(err, rc, "%s:%" PRIu64, path, line);
}

wf_status wf_text_gather(wf_text *t, uint32_t field, size_t bytes, uint64_t first,
                         const uint64_t at[], size_t n,
                         wf_status (*take)(void *arg, size_t i, const void *raw, wf_err *err),
                         void *arg, wf_err *err)
{
    uint64_t little[128];
    void *raw = bytes <= sizeof little ? little : malloc(bytes);
    held *h = NULL;
    wf_status rc = raw ? WF_OK : wf_fail_nomem(err, bytes);

    for (size_t i = 0; rc == WF_OK && i < n; i++) {
        uint64_t record = (first + at[i]) % t->stock.block;
        size_t begin;

        rc = pin_for(t, first + at[i], &h, err);
        if (rc != WF_OK)
            break;
        begin = h->begins[record];
        rc = t->format->parse(t->plan, field, h->text + begin, bytes_of(t, h, record), raw, err);
        if (rc == WF_OK)
            rc = take(arg, i, raw, err);
        if (rc != WF_OK)
            rc = placed(t, h, begin, err, rc);
    }
    unpin(t, h);
    if (raw != little)
        free(raw);
    return rc;
}
