/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/format.h - file formats of fields, one const row each in common/data/NAME.c, named in
 * common/data/meson.build. For this room. */
#ifndef WF_DATA_FORMAT_H
#define WF_DATA_FORMAT_H

#include "common/base/bytes.h"
#include "common/base/status.h"
#include "common/tensor/tensor.h"
#include <stdbool.h>
#include <stddef.h>

/* The most that one field's file may hold, unpacked: 64 GiB. */
#define WF_FIELD_LIMIT ((size_t)64 << 30)

/* An array as a file holds it: axis 0 counts records. */
typedef struct wf_array {
    wf_dtype dtype;
    uint32_t rank; /* at least 1 */
    int64_t dims[WF_MAX_RANK];
    void *data; /* malloc; the caller's */
} wf_array;

typedef struct wf_format {
    const char *name;
    bool (*knows)(const char *path); /* by its name; ".gz" may follow */
    /* Reads a whole file. On failure *out is as it was. */
    wf_status (*read)(const char *path, wf_array *out, wf_err *err);
} wf_format;

/* A file, or what a .gz file unpacks to, read front to back. */
typedef struct wf_source wf_source;
WF_MUST_USE wf_status wf_source_open(const char *path, wf_source **out, wf_err *err);
void wf_source_close(wf_source **s);
/* Reads up to n bytes; *got is less only at the end. Errors: WF_IO, WF_CORRUPT (bad gzip). */
WF_MUST_USE wf_status wf_source_read(wf_source *s, void *data, size_t n, size_t *got, wf_err *err);
/* Exactly n bytes. Errors: WF_CORRUPT when the file ends before, with the bytes wanted and present.
 */
WF_MUST_USE wf_status wf_source_all(wf_source *s, void *data, size_t n, wf_err *err);
/* Errors: WF_INVALID when bytes are left. */
WF_MUST_USE wf_status wf_source_at_end(wf_source *s, wf_err *err);
/* Checks rank and dims of an array and reads its content, which goes on to the end of the source.
 * Allocates only what is bounded by WF_FIELD_LIMIT, and grows with what really arrives. */
WF_MUST_USE wf_status wf_source_array(wf_source *s, wf_dtype dtype, uint32_t rank,
                                      const int64_t dims[], wf_array *out, wf_err *err);
/* True when path ends in `ending`, or in `ending` and ".gz". */
bool wf_path_is(const char *path, const char *ending);

#endif
