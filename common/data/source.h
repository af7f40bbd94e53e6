/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/source.h - the bytes of a data file, plain, through gzip or zstd, or out of a zip
 * file. For this room only.
 *
 * gzip goes through zlib, which streams and says what is wrong; the bulk of a file in one sound
 * member goes through libdeflate, which is four times faster and was half of the time to the first
 * step of a small job.
 *
 * Knows how many bytes can come out at most, so that a header's claim can be held against it before
 * anything is allocated: the file's size, or 1032 times that through gzip (deflate packs no
 * closer).
 */
#ifndef WF_DATA_SOURCE_H
#define WF_DATA_SOURCE_H

#include "common/base/status.h"
#include "common/data/zip.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

enum { WF_SOURCE_ROOM = 256 };

typedef struct wf_source {
    gzFile file;
    wf_zip *zip;      /* or a member of it */
    const char *path; /* borrowed */
    bool packed;      /* its name ends with ".gz" */
    uint64_t size;    /* of the file on disk; of a zstd file that of its content */
    uint64_t most;    /* bytes that can come out */
    uint64_t at;      /* bytes that came out so far */
    bool ended;       /* all was read, and gzip's checksum is right */
    bool head_only;   /* the elements behind a head are wanted by nobody */
    /* Of an array, only so many records from the first one on are wanted; 0: all of them. */
    uint64_t window_first, window_records;
} wf_source;

/* Opens a file; *s is closed with wf_source_close also after a failure. Errors: WF_NOTFOUND, WF_IO;
 * WF_INVALID for a folder, or a name that ends with ".gz" and is not gzip inside; those of
 * wf_zst_open. */
WF_MUST_USE wf_status wf_source_open(wf_source *s, const char *path, wf_err *err);
/* The same of a member of a zip file; `path` is for messages, and borrowed. Errors: those of
 * wf_zip_open and wf_zip_begin. */
WF_MUST_USE wf_status wf_source_open_member(wf_source *s, const char *path, const char *zip,
                                            const char *member, wf_err *err);
void wf_source_close(wf_source *s);

/* Whether `bytes` more can be there at all. Errors: WF_INVALID, with bytes wanted and present. */
WF_MUST_USE wf_status wf_source_expect(const wf_source *s, uint64_t bytes, wf_err *err);
/* The next n bytes. Errors: WF_INVALID when the file ends before (says wanted and present) or
 * gzip's checksum is wrong; WF_IO. */
WF_MUST_USE wf_status wf_source_read(wf_source *s, void *out, size_t n, wf_err *err);
/* The same, or none at the end of the file, which is then looked at as wf_source_end does. *any:
 * which of them. Errors: as wf_source_read and wf_source_end. */
WF_MUST_USE wf_status wf_source_next(wf_source *s, void *out, size_t n, bool *any, wf_err *err);
/* Passes over n bytes of a file that is neither packed nor in a zip file. Errors: WF_INVALID when
 * it ends before; WF_IO. */
WF_MUST_USE wf_status wf_source_skip(wf_source *s, uint64_t n, wf_err *err);
/* The n bytes that are left, into memory that has room for WF_SOURCE_ROOM more behind them. Errors:
 * as wf_source_read. */
WF_MUST_USE wf_status wf_source_rest(wf_source *s, void *out, size_t n, wf_err *err);
/* Whether exactly n bytes follow, by the file's size alone: of gzip by the length at its end (RFC
 * 1952, ISIZE), which is that of the last member. False says nothing. */
bool wf_source_holds(const wf_source *s, uint64_t n);
/* That nothing follows; through gzip its checksum is looked at here. Errors: WF_INVALID. */
WF_MUST_USE wf_status wf_source_end(wf_source *s, wf_err *err);

#endif
