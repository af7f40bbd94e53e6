/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/ranges.h - any range of a file's bytes, plain or through gzip or zstd. For this room
 * only.
 *
 * Through gzip a range is reached from the nearest point before it: a place in the compressed file
 * with the 32 KiB of content that deflate may refer back to (the way of zlib's examples/zran.c).
 * Points are made while the whole is scanned, at most WF_RANGES_POINTS of them: their distance
 * is 256 KiB of content at first, and doubles when they are too many. Through zstd the whole
 * content goes into a temporary file (zst.h).
 *
 * Threading: one thread at a time.
 */
#ifndef WF_DATA_RANGES_H
#define WF_DATA_RANGES_H

#include "common/base/status.h"
#include <stddef.h>
#include <stdint.h>

enum { WF_RANGES_POINTS = 1024 };

typedef struct wf_ranges wf_ranges;

/* Opens a file; a name that ends with ".gz" is gzip inside, one with ".zst" zstd. `path` is
 * borrowed. The caller owns *out. Errors: WF_NOTFOUND, WF_IO; WF_INVALID for a folder or what is no
 * gzip; WF_NOMEM; those of wf_zst_open. */
WF_MUST_USE wf_status wf_ranges_open(const char *path, wf_ranges **out, wf_err *err);
/* Closes *r and sets it to NULL; NULL is fine. */
void wf_ranges_close(wf_ranges **r);

/* Gives all the content in order, in pieces, until `take` fails or the content ends. Errors: those
 * of `take`; WF_INVALID for damaged gzip data; WF_IO. */
WF_MUST_USE wf_status wf_ranges_scan(wf_ranges *r,
                                     wf_status (*take)(void *arg, const char *text, size_t n,
                                                       wf_err *err),
                                     void *arg, wf_err *err);
/* Reads n bytes of content from byte `begin` on; through gzip what was scanned is reached. Errors:
 * WF_INVALID when the file ends before, or is damaged; WF_IO. */
WF_MUST_USE wf_status wf_ranges_read(wf_ranges *r, uint64_t begin, size_t n, char *out,
                                     wf_err *err);

#endif
