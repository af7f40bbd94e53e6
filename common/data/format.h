/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/format.h - file formats: one row and one file each. For this room only.
 *
 * To add one: new common/data/mat.c that defines wf_format_mat, named in meson.build; the table of
 * format.c is made from that list. `read` gives a whole array; what a header claims goes through
 * wf_array_read, which compares it with the file before it allocates. Or `feature` picks one of
 * each record's. Or `text` tells records apart and parses them (text.h).
 */
#ifndef WF_DATA_FORMAT_H
#define WF_DATA_FORMAT_H

#include "common/base/status.h"
#include "common/data/bag.h"
#include "common/data/data.h"
#include "common/data/source.h"
#include "common/data/text.h"
#include "common/data/zip.h"
#include "common/tensor/tensor.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An array in memory: of a data set, dims[0] records of dims[1..]. */
typedef struct wf_array {
    wf_dtype dtype;
    uint32_t rank;
    int64_t dims[WF_MAX_RANK];
    void *data; /* aligned to 64; owned; NULL when only its head was wanted */
    size_t bytes;
    bool lent; /* the data is not owned, and aligned to its dtype alone */
} wf_array;

void wf_array_close(wf_array *a);
/* Memory for an array of a's dtype, rank and dims, which are within bounds; fills bytes and data.
 * limit_bytes bounds it; 0: no limit. `path` is for the message. Errors: WF_INVALID for a size that
 * overflows; WF_NOMEM. */
WF_MUST_USE wf_status wf_array_make(wf_array *a, const char *path, size_t limit_bytes, wf_err *err);

/* One element as a file holds it. Integers without a dtype of weft's own are widened. */
typedef struct wf_element {
    char kind; /* 'b' bool, 'i' signed, 'u' unsigned, 'f' float */
    uint8_t size;
    bool big_endian;
} wf_element;

/* The dtype that elements are held in; WF_NONE if weft does not read them (u8: 64 bits unsigned).
 */
wf_dtype wf_element_dtype(wf_element e);

/* Allocates and reads an array whose rank and dims the header gave, and checks that the file ends
 * there; with head_only only that by its size, where its size tells. *out is empty before, and
 * after a failure. limit_bytes bounds what is held; 0: no limit. Errors: WF_INVALID for a rank
 * above WF_MAX_RANK, a negative dimension, a size that overflows or is not in the file;
 * WF_UNSUPPORTED for elements without a dtype; WF_NOMEM; WF_IO. */
WF_MUST_USE wf_status wf_array_read(wf_source *s, wf_element e, uint32_t rank, const int64_t dims[],
                                    size_t limit_bytes, wf_array *out, wf_err *err);

/* An npy file, whatever it comes out of. Errors: as wf_array_read. */
WF_MUST_USE wf_status wf_format_read_npy(wf_source *s, size_t limit_bytes, wf_array *out,
                                         wf_err *err);

enum { WF_FORMAT_KEYS = 8 };

typedef struct wf_format {
    const char *name;
    const char *missing; /* what to do about a file that is not there; NULL: correct the path */
    /* Reads what `s`, just opened, holds. Errors: as wf_array_read. */
    wf_status (*read)(wf_source *s, size_t limit_bytes, wf_array *out, wf_err *err);
    /* Of a format whose files hold several arrays: the member of the zip file `path` with the array
     * of that name, or (NULL) the only one there is. Errors: WF_INVALID with what there is,
     * WF_USAGE when a name is wanted; those of wf_zip_open. */
    wf_status (*member)(const char *path, const char *name, char out[WF_ZIP_NAME], wf_err *err);
    /* Or reads the feature of that name, which each record has, of what `s` holds; NULL: the path
     * names none. bag: records have any number of values; NULL: all have as many. Errors: as
     * wf_array_read; WF_NOTFOUND with the names that there are. */
    wf_status (*feature)(wf_source *s, const char *name, const wf_bag *bag, size_t limit_bytes,
                         wf_array *out, wf_err *err);
    /* Or reads what a path with or without "#NAME" names. trained: the path of the same field of
     * the training data; NULL: this one. resize: the step that images go through; NULL: none.
     * Errors: as wf_array_read. */
    wf_status (*load)(const char *path, const char *trained, const wf_map_step *resize,
                      size_t limit_bytes, wf_array *out, wf_err *err);
    /* Or makes a field without a file. Errors: WF_USAGE, WF_NOMEM. */
    wf_status (*make)(const wf_dataset_spec *spec, const wf_field_spec *field, size_t limit_bytes,
                      wf_array *out, wf_err *err);
    /* Or has a field in memory, which outlives the data set. Errors: WF_USAGE, WF_NOMEM. */
    wf_status (*lend)(const wf_dataset_spec *spec, const wf_field_spec *field, size_t limit_bytes,
                      wf_array *out, wf_err *err);
    /* Or knows text whose records are columns. */
    const wf_text_format *text;
    const char *keys[WF_FORMAT_KEYS]; /* of a job's `data`: those that not all formats have */
} wf_format;

/* Whether a path of the format may end with "#NAME". */
static inline bool wf_format_has_members(const wf_format *f)
{
    return f->member || f->feature || f->load;
}

/* The row of that name. Errors: WF_USAGE with the nearest. */
WF_MUST_USE wf_status wf_format_find(const char *name, const wf_format **out, wf_err *err);

#define WF_FORMAT(name) extern const wf_format wf_format_##name;
#include "common/data/rows.def"
#undef WF_FORMAT

#endif
