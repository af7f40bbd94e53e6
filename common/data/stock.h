/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/stock.h - where the records of text files are, found in one pass. For this room only.
 *
 * The files count as one text: each without its header, and with a line end behind its last record
 * (behind any, where empty lines do not count).
 * It is cut into blocks of equally many records (the last may have fewer), of about
 * WF_STOCK_BLOCK bytes: what is read at a time.
 *
 * Threading: one thread at a time.
 */
#ifndef WF_DATA_STOCK_H
#define WF_DATA_STOCK_H

#include "common/base/status.h"
#include "common/data/data.h"
#include "common/data/ranges.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WF_STOCK_BLOCK = 256 << 10,
    WF_STOCK_RECORD = 1 << 20,       /* bytes of a record, at most, */
    WF_STOCK_MOST_RECORDS = 1 << 16, /* records of a block, */
    WF_STOCK_LARGEST = 16 << 20      /* and bytes of one */
};

/* Records that are so many tokens of a file and the one behind them, and begin so many tokens
 * apart. They lie over each other, and none goes from one file into the next. */
typedef struct wf_window_form {
    uint64_t length, stride;
    wf_token_form tokens;
} wf_window_form;

/* Finds the end of a record in n bytes: the number of bytes up to it, with its line end; 0: it is
 * further on. *quoted goes on from one piece of a record to the next. Adds to *lines. */
typedef size_t (*wf_record_end)(const char *text, size_t n, bool *quoted, uint64_t *lines);

/* How records stand in a text. Empty lines are none. */
typedef struct wf_record_form {
    wf_record_end end;
    bool header;  /* each file begins with one that is the names of its columns */
    char comment; /* a line that begins with it is no record; 0: there are no such lines */
    /* Delimiters in a piece of a record, where records with other than `cells` cells are skipped;
     * NULL: none is. *quoted as for `end`. */
    size_t (*count)(const char *text, size_t n, char delimiter, bool *quoted);
    char delimiter;
    size_t cells;          /* 0: as many as the header has */
    bool keeps_empty;      /* empty lines are records as well */
    wf_window_form window; /* records are windows of tokens (windows.h), if it has a length */
} wf_record_form;

/* Whether n bytes up to the end of a record are one that counts. */
bool wf_record_is_one(const wf_record_form *f, const char *text, size_t n);

/* The bytes of the record that begins at `text`, without its line end and the lines up to n that
 * are no records. */
size_t wf_record_trim(const wf_record_form *f, const char *text, size_t n);

typedef struct wf_stock_block {
    uint64_t begin, end, line; /* in the text; of its first record in its file, from 1 */
    uint32_t file;             /* where that is */
} wf_stock_block;

typedef struct wf_stock_file {
    wf_ranges *ranges;
    char *path;   /* a copy */
    char *header; /* its first record, without the line end; NULL: there is none */
    size_t header_bytes;
    uint64_t skip, base, bytes; /* of the file before the text; where in the text; how many there */
    uint64_t lines;             /* before the text */
    uint64_t first;             /* the records before it */
    bool adds_end;              /* a line end stands behind it that is not in the file */
} wf_stock_file;

typedef struct wf_stock {
    wf_record_form form;
    wf_stock_file *files; /* [n_files] */
    uint32_t n_files;
    wf_stock_block *blocks; /* [n_blocks] */
    size_t n_blocks, room;
    uint64_t records, block; /* in all; of a full block */
    uint64_t skipped;        /* records of another number of cells; */
    uint32_t skipped_file;   /* where the first of them is */
    uint64_t skipped_line;
    uint64_t digest; /* of the files' content, in order */
} wf_stock;

/* Opens the files, whose records have this form, and takes stock. Close it after an error as well.
 * Errors: those of wf_ranges_scan; WF_INVALID for no records, a record that is too long, or quotes
 * that do not close. */
WF_MUST_USE wf_status wf_stock_take(wf_stock *s, const char *const paths[], uint32_t n,
                                    const wf_record_form *form, wf_err *err);
void wf_stock_close(wf_stock *s);

/* The bytes of a block. */
size_t wf_stock_bytes(const wf_stock *s, size_t block);
/* The records of a block. */
uint64_t wf_stock_records(const wf_stock *s, size_t block);
/* Reads a block's text into out [wf_stock_bytes]. Errors: those of wf_ranges_read. */
WF_MUST_USE wf_status wf_stock_read(wf_stock *s, size_t block, char *out, wf_err *err);
/* Gives all records in order, each without its line end, until `take` fails, whose error gets file
 * and line. Errors: those of `take` and wf_stock_read; WF_NOMEM.
 */
WF_MUST_USE wf_status wf_stock_each(wf_stock *s,
                                    wf_status (*take)(void *arg, const char *text, size_t n,
                                                      wf_err *err),
                                    void *arg, wf_err *err);
/* Finds the records of a block with this text: begins [its records + 1], the last of which is where
 * the text ends. False: they are not those that were there when stock was taken. */
bool wf_stock_find(const wf_stock *s, size_t block, const char *text, uint32_t begins[]);
/* The file and the line of byte `at` of a block with this text. */
const char *wf_stock_place(const wf_stock *s, size_t block, const char *text, size_t at,
                           uint64_t *line);

/* For windows.c: one block more. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_stock_add_block(wf_stock *s, wf_stock_block b, wf_err *err);

#endif
