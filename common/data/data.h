/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/data.h - the front door of common/data: training data in memory, by record.
 *
 * A data set is a handful of named fields ("x", "y"), each from a file of its own, all of the same
 * number of records. A field is held whole, in the dtype of its file, and mapped (scaled, reshaped,
 * cast, one-hot) while a batch is gathered: MNIST takes 47 MB and not 188.
 *
 * Nothing of a file is believed: dimensions are bounded and multiplied with a check before anything
 * is allocated, and a file that is cut short, or goes on after its end, is refused with the bytes
 * wanted and present.
 *
 * Other headers of this room: shuffle.h (the order of an epoch), reader.h (batches ahead of time,
 * on a thread), digits.h (a data set that weft draws), format.h (how to add a file format; one row
 * each).
 */
#ifndef WF_DATA_DATA_H
#define WF_DATA_DATA_H

#include "common/base/status.h"
#include "common/tensor/tensor.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WF_MAX_FIELDS = 64, WF_MAX_MAP_STEPS = 16 };

typedef struct wf_dataset wf_dataset;

/* One step of `map:`, applied to each record. Which members count depends on the type:
 *   scale    x * factor, gives f32 (f64 from f64)
 *   reshape  to dims [rank], of the same product
 *   one_hot  an integer to `classes` f32 values, one of them 1
 *   cast     to dtype, as C converts; f16 and bf16 are not done here */
typedef struct wf_map_step {
    const char *type;
    double factor;
    uint32_t rank;
    int64_t dims[WF_MAX_RANK];
    int64_t classes;
    wf_dtype dtype;
} wf_map_step;

typedef struct wf_field_source {
    const char *name; /* "x" */
    const char *path; /* gzip by ".gz" at the end */
    const wf_map_step *steps;
    size_t n_steps;
} wf_field_source;

/* A field as a batch delivers it: one record has dims[rank] elements of dtype. */
typedef struct wf_field {
    const char *name;
    const char *path;
    wf_dtype dtype;
    uint32_t rank;
    int64_t dims[WF_MAX_RANK - 1];
    int64_t elems;       /* of one record */
    size_t record_bytes; /* as delivered */
} wf_field;

/* Reads n fields of format "idx" (MNIST) or "npy" (a path "a.npz:name" takes one array of an
 * archive), or "" to go by the file names. Borrowed arguments; the caller owns *out.
 * Errors: WF_NOTFOUND, WF_IO; WF_INVALID: a file that is not what it should be, fields of different
 * counts, a step that does not fit; WF_USAGE: an unknown format or step, with the nearest;
 * WF_UNSUPPORTED; WF_NOMEM. */
WF_MUST_USE wf_status wf_dataset_open(const char *format, size_t n, const wf_field_source fields[],
                                      wf_dataset **out, wf_err *err);
/* Frees *d and sets it to NULL; NULL is fine. */
void wf_dataset_free(wf_dataset **d);

uint64_t wf_dataset_records(const wf_dataset *d);
uint32_t wf_dataset_n_fields(const wf_dataset *d);
const wf_field *wf_dataset_field(const wf_dataset *d, uint32_t i);
/* -1 when there is none of that name. */
int64_t wf_dataset_find(const wf_dataset *d, const char *name);

/* Makes field i fit a graph's input: delivered as dtype, one record as dims[rank] of which one may
 * be -1. To be called before readers are made. Errors: WF_SHAPE with both shapes: what the file
 * gives and what the graph wants; WF_INVALID for a cast that loses (float to integer). */
WF_MUST_USE wf_status wf_dataset_deliver(wf_dataset *d, uint32_t i, wf_dtype dtype, uint32_t rank,
                                         const int64_t dims[], wf_err *err);

/* Copies records[n] of field i, mapped, one after the other to `out` (n * record_bytes). Every
 * index is below wf_dataset_records. */
void wf_dataset_gather(const wf_dataset *d, uint32_t i, size_t n, const uint64_t records[],
                       void *out);

/* Checks that every element of an integer-valued field i lies in [0, classes), before training.
 * Errors: WF_INVALID, naming file, record (from 0) and value. */
WF_MUST_USE wf_status wf_dataset_check_labels(const wf_dataset *d, uint32_t i, int64_t classes,
                                              wf_err *err);
/* The least and the greatest value of field i as the file holds it. */
void wf_dataset_extent(const wf_dataset *d, uint32_t i, double *least, double *greatest);

#endif
