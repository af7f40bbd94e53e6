/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/formats.h - the names of data formats, and what a job says of each. */
#ifndef WF_DATA_FORMATS_H
#define WF_DATA_FORMATS_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include <stdbool.h>
#include <stddef.h>

typedef enum wf_format_kind {
    WF_FORMAT_ARRAYS, /* each field is a file */
    WF_FORMAT_TEXT,   /* fields are columns of all files */
    WF_FORMAT_MADE    /* no files: records are generated */
} wf_format_kind;

/* The kind of a format. Errors: WF_USAGE with the nearest name, or all. */
WF_MUST_USE wf_status wf_format_kind_of(const char *name, wf_format_kind *out, wf_err *err);

/* The format of a file, by its name, or by its first bytes where the name says nothing: a file that
 * cannot be read is "idx". */
const char *wf_format_guess(const char *path);

/* What there is to say where a file of a guessed format could not be read: `rc` and `err` as they
 * are, or, of one that was "idx" for want of anything else, that its format is unknown. */
wf_status wf_format_unknown(const char *format, const char *path, wf_status rc, wf_err *err);

/* Whether `data` in the job file has this key in the format; others have it or not. */
bool wf_format_has_key(const char *format, const char *key);

/* That a path of a job names a file, or several by a pattern. Errors: WF_NOTFOUND. */
WF_MUST_USE wf_status wf_format_find_files(const char *format, const char *path, wf_err *err);
/* What the first row of a csv file says. */
typedef struct wf_csv_head {
    const char *const *names; /* [n]: of the columns; "1", "2", ... without a header */
    size_t n;
    bool header;    /* none of its cells is a number */
    char delimiter; /* the comma, semicolon, tab or bar that it has most of */
} wf_csv_head;
/* Reads it, into the arena. Errors: WF_NOTFOUND, WF_IO; WF_INVALID for an empty file, or a row that
 * is too long or no good; WF_NOMEM. */
WF_MUST_USE wf_status wf_csv_read_head(const char *path, wf_arena *a, wf_csv_head *out,
                                       wf_err *err);
/* The names of the arrays in an npz file, in the arena. Errors: WF_NOTFOUND, WF_IO; WF_INVALID for
 * what is no zip file; WF_NOMEM. */
WF_MUST_USE wf_status wf_npz_names(const char *path, wf_arena *a, const char *const **out,
                                   size_t *n, wf_err *err);
/* The names of the classes of a folder of images, in their order, in the arena. Errors:
 * WF_NOTFOUND, WF_IO; WF_INVALID for what is no such folder; WF_NOMEM. */
WF_MUST_USE wf_status wf_images_classes(const char *folder, wf_arena *a, const char *const **out,
                                        size_t *n, wf_err *err);

#endif
