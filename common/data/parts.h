/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/parts.h - a field of arrays, read from its files into one. For this room only. */
#ifndef WF_DATA_PARTS_H
#define WF_DATA_PARTS_H

#include "common/base/arena.h"
#include "common/data/format.h"

typedef struct wf_part {
    const char *path;
    uint64_t records;
} wf_part;

typedef struct wf_parts {
    wf_part *files; /* [n], one after the other; in the arena */
    size_t n;
} wf_parts;

/* Reads one file whole. Of formats with several arrays to a file `path` is "FILE#NAME", or FILE for
 * the array called `name` (NULL: the only one). Errors: those of the format. */
WF_MUST_USE wf_status wf_parts_read_file(const wf_format *format, const char *path,
                                         const char *name, size_t limit_bytes, wf_array *out,
                                         wf_err *err);
/* Reads all files of a field of `set`, or has it lent, whose records are of one dtype and shape, or
 * bags (NULL: none). *out is the caller's. Errors: those of wf_paths_expand and of the format;
 * WF_INVALID naming two files that do not go together. */
WF_MUST_USE wf_status wf_parts_read(const wf_format *format, const wf_dataset_spec *set,
                                    const wf_field_spec *spec, const char *trained,
                                    const wf_bag *bag, size_t limit_bytes, wf_arena *a,
                                    wf_parts *parts, wf_array *out, wf_err *err);
/* The file that record `record` of all is in, and which it is there. */
const wf_part *wf_parts_find(const wf_parts *p, uint64_t record, uint64_t *at);

#endif
