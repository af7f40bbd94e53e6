/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/dataset.h - what a data set is made of: opened in data.c, read in gather.c. For this
 * room only. */
#ifndef WF_DATA_DATASET_H
#define WF_DATA_DATASET_H

#include "common/base/arena.h"
#include "common/data/format.h"
#include "common/data/parts.h"
#include "common/data/steps.h"
#include "common/data/text.h"

typedef struct wf_field {
    wf_field_info info;
    wf_array array;  /* of a text format none */
    wf_parts parts;  /* the files that it is of */
    int64_t classes; /* of a text format: that labels are held against; 0: no labels */
    bool shares;     /* of a text format: records are held against 0 to 1 */
    wf_steps steps;
} wf_field;

struct wf_dataset {
    wf_arena *arena; /* names and paths */
    uint32_t n_fields;
    uint64_t n_records, digest;
    uint64_t cut;   /* bags, of arrays */
    bool is_random; /* crops and flips are */
    uint64_t seed;
    uint64_t first; /* of the files' records; those before it are not of this data set */
    wf_text *text;  /* NULL: the fields are arrays */
    wf_field fields[WF_DATA_MAX_FIELDS];
};

/* A label that is no class, or no share, as an error; `begin` is its sentence up to the label. For
 * gather.c, which meets those of text; labels.c looks at arrays. */
WF_MUST_USE wf_status wf_label_check_class(const char *begin, double label, int64_t classes,
                                           wf_err *err);
/* The same of all numbers of a record that has gone through its steps. */
WF_MUST_USE wf_status wf_label_check_share(const wf_field *f, const void *record, const char *begin,
                                           wf_err *err);

/* Gives all steps that go by numbers their own copy of them: those of the spec, else those of
 * `from`, a data set of the same fields, else (NULL) those of the records themselves. Errors:
 * WF_INVALID for numbers that are not finite; those of reading. */
WF_MUST_USE wf_status wf_dataset_settle(wf_dataset *d, const wf_dataset *from, wf_err *err);
/* Gives all fields of text with the step `vocabulary` their words, where these are not given: those
 * of the same field of `from`, else (NULL) those of the records themselves; the spec says how many.
 * Errors: WF_FULL for too many different ones, WF_INVALID for none; those of reading. */
WF_MUST_USE wf_status wf_dataset_settle_words(wf_dataset *d, const wf_dataset *from,
                                              const wf_dataset_spec *spec, wf_err *err);
/* Records first to first + n of a field as `steps` leave them, without chance, into out. */
WF_MUST_USE wf_status wf_dataset_read(const wf_dataset *d, uint32_t field, const wf_steps *steps,
                                      uint64_t first, size_t n, void *out, wf_err *err);

#endif
