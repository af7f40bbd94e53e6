/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/learnt.h - what map steps have taken from the training data: it belongs to the model,
 * as its weights do, and is kept with them. */
#ifndef WF_DATA_LEARNT_H
#define WF_DATA_LEARNT_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include "common/data/data.h"
#include <stddef.h>
#include <stdint.h>

enum {
    WF_LEARNT_NUMBERS = 1 << 17, /* of one step, at most, */
    WF_LEARNT_WORDS = 1 << 20,   /* as these words, */
    WF_LEARNT_WORD = 255,        /* bytes of each, */
    WF_LEARNT_BYTES = 64 << 20,  /* and bytes of all of them, with a 0 behind each */
    WF_LEARNT_MOST = WF_DATA_MAX_FIELDS * WF_DATA_MAX_STEPS
};

/* One step of one field. Text and numbers are borrowed. */
typedef struct wf_learnt {
    const char *field;
    uint32_t step; /* its place in the field's steps, from 0 */
    const char *type;
    /* One record as the training data has it, before all steps. */
    wf_dtype dtype;
    uint32_t rank;
    int64_t dims[WF_MAX_RANK];
    const double *numbers; /* [n_numbers], as wf_map_step has them; finite */
    size_t n_numbers;
    const char *const *words; /* [n_words], as wf_map_step has them */
    size_t n_words;
} wf_learnt;

/* Copies words [n] into an arena: NULL when there is no memory. */
const char *const *wf_words_copy(wf_arena *a, const char *const words[], size_t n);

/* Copies that are somebody's own. {0} is empty. */
typedef struct wf_learnt_list {
    wf_arena *arena;
    wf_learnt *rows; /* [n] */
    size_t n;
} wf_learnt_list;
/* Copies rows [n] with all that they name into a list, which is empty before, and after a failure.
 * Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_learnt_keep(const wf_learnt rows[], size_t n, wf_learnt_list *out,
                                     wf_err *err);
void wf_learnt_close(wf_learnt_list *l);

/* What the steps of an open data set go by, into out; returns how many. Borrowed for the data set's
 * life. */
size_t wf_dataset_learnt(const wf_dataset *d, wf_learnt out[WF_LEARNT_MOST]);

/* Gives the steps of a field what was learnt for them; they borrow it. Errors: WF_MISMATCH when it
 * was learnt for another step. */
WF_MUST_USE wf_status wf_learnt_give(const wf_learnt rows[], size_t n, const char *field,
                                     wf_map_step steps[], size_t n_steps, wf_err *err);

/* What steps make of records of this dtype and shape, in place. Errors: WF_USAGE, WF_SHAPE. */
WF_MUST_USE wf_status wf_map_shape(const wf_map_step steps[], size_t n, wf_dtype *dtype,
                                   uint32_t *rank, int64_t dims[WF_MAX_RANK], wf_err *err);

#endif
