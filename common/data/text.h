/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/text.h - data sets in text files, read block by block as their records are asked for.
 * For this room only.
 *
 * What is held: the places of the blocks, and the text of as many blocks as two windows of the
 * order have (order.h), whatever the size of the files. Records are parsed when they are gathered.
 *
 * Threading: any number of threads may gather at once.
 */
#ifndef WF_DATA_TEXT_H
#define WF_DATA_TEXT_H

#include "common/data/data.h"
#include "common/data/stock.h"
#include "common/data/vocabulary.h"

/* One record of a field as it is parsed: a number, or a row of them. */
typedef struct wf_text_shape {
    wf_dtype dtype;
    bool is_row;
    int64_t width; /* 1 without a row */
    bool is_bag;   /* of the row the values of a bag, filled up */
} wf_text_shape;

/* What one format knows of its records. */
typedef struct wf_text_format {
    wf_record_form form; /* header: there is one where the spec says so */
    /* Of a format whose records may be windows, else NULL: how long these are, or 0. Errors:
     * WF_USAGE. */
    wf_status (*window)(const wf_dataset_spec *spec, wf_window_form *out, wf_err *err);
    /* Plans a data set of these files, of which stock is taken; the caller owns *plan. Errors:
     * WF_USAGE, WF_NOMEM; those of reading. */
    wf_status (*plan)(const wf_dataset_spec *spec, wf_stock *stock, void **plan, wf_err *err);
    void (*free)(void *plan);
    wf_text_shape (*shape)(const void *plan, uint32_t field);
    /* Of a format with words, else NULL: those that cells of a field are places among; NULL: its
     * cells are none. *learns: they are not known yet, and parsing counts them, until `learnt` says
     * that they are. */
    wf_vocabulary *(*words)(const void *plan, uint32_t field, bool *learns);
    void (*learnt)(void *plan, uint32_t field);
    /* Of a format with bags, else NULL: how many have been cut so far. */
    uint64_t (*cut)(const void *plan);
    /* Parses the elements of a field of one record, without its line end. Errors: WF_INVALID. */
    wf_status (*parse)(const void *plan, uint32_t field, const char *text, size_t n, void *out,
                       wf_err *err);
} wf_text_format;

typedef struct wf_text wf_text;

/* Takes stock of the files and plans; the spec is read during the call only. The caller owns *out.
 * Errors: those of wf_stock_take and of the format. */
WF_MUST_USE wf_status wf_text_open(const wf_text_format *format, const wf_dataset_spec *spec,
                                   wf_text **out, wf_err *err);
void wf_text_close(wf_text **t);

uint64_t wf_text_records(const wf_text *t);
uint64_t wf_text_digest(const wf_text *t);
wf_text_shape wf_text_shape_of(const wf_text *t, uint32_t field);
/* The words of a field, and whether they are still to be learnt, as the format has them. */
wf_vocabulary *wf_text_words(const wf_text *t, uint32_t field, bool *learns);
void wf_text_learnt(wf_text *t, uint32_t field);
/* The first file's path, borrowed: for messages. */
const char *wf_text_path(const wf_text *t);
/* The records that were skipped, and where the first is; the path is borrowed. */
uint64_t wf_text_skipped(const wf_text *t, const char **path, uint64_t *line);
uint64_t wf_text_cut(const wf_text *t);
/* File i, borrowed, and its records; false when there is none. */
bool wf_text_part(const wf_text *t, size_t i, const char **path, uint64_t *records);
/* The records of a full block, and the blocks of a window. */
void wf_text_blocks(const wf_text *t, uint64_t *block, uint64_t *window);
/* The most bytes of text that are held at one time. */
size_t wf_text_bytes(const wf_text *t);

/* Calls take(arg, i, raw) with the parsed elements [bytes] of a field for each record first +
 * at[i]. Errors: WF_INVALID with file and line; those of reading; those of `take`, which get file
 * and line. */
WF_MUST_USE wf_status wf_text_gather(
    wf_text *t, uint32_t field, size_t bytes, uint64_t first, const uint64_t at[], size_t n,
    wf_status (*take)(void *arg, size_t i, const void *raw, wf_err *err), void *arg, wf_err *err);

#endif
