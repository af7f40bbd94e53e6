/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/steps.h - the `map` steps of a field, planned once and run record by record. For this
 * room only.
 *
 * A plan is a few views, which choose pixels (views.h), and then a short list of stages, which
 * change elements; reshape changes the shape of the plan only. Views come first whatever the order
 * of the steps: a step that goes by the place of an element may not stand before one. What can fail
 * fails while planning.
 */
#ifndef WF_DATA_STEPS_H
#define WF_DATA_STEPS_H

#include "common/base/status.h"
#include "common/data/learnt.h"
#include "common/data/views.h"
#include <stdint.h>

typedef enum wf_stage_kind {
    WF_STAGE_CAST,
    WF_STAGE_SCALE,
    WF_STAGE_ONE_HOT,
    WF_STAGE_LOG1P,
    WF_STAGE_FILL,
    WF_STAGE_CLIP,
    WF_STAGE_HASH,
    WF_STAGE_BUCKETISE,
    WF_STAGE_STANDARDISE
} wf_stage_kind;

typedef struct wf_stage {
    wf_stage_kind kind;
    wf_dtype from, to;
    double factor; /* of scale; of fill what stands for NaN */
    uint32_t step; /* of the field's, from 0 */
    /* Of one_hot: one element becomes so many; of hash: results are below, and 0: have 63 bits. */
    int64_t classes;
    /* Of hash: added for each element before it in the record, to the result or, of 63 bits, to
     * what is hashed beside it. */
    int64_t shift;
    bool keeps_none; /* of hash, of a bag: what stands for no id (bag.h) becomes -1 */
    /* Of standardise the means [period], then what is divided by [period]; NULL: those of the
     * training data, when these are known. Of bucketise the boundaries, of clip the bounds.
     * Borrowed. */
    const double *numbers;
    size_t n_numbers;
    int64_t period; /* elements so many apart have one mean */
} wf_stage;

typedef struct wf_steps {
    wf_view views[WF_DATA_MAX_STEPS];
    uint32_t n_views;
    int64_t most_elems;                     /* that a view leaves */
    wf_stage stages[WF_DATA_MAX_STEPS + 1]; /* one_hot last, if it is there */
    uint32_t n;
    int64_t elems; /* of a record that goes into the stages */
    wf_dtype in;
    const char *words; /* the type of the step that has records as places of words; NULL: none */
    wf_dtype dtype;    /* of what comes out, with its shape */
    uint32_t rank;
    int64_t dims[WF_MAX_RANK];
} wf_steps;

/* Plans a field's steps over records of dims[rank]; the batch axis must fit beside them, so rank is
 * below WF_MAX_RANK. Errors: WF_USAGE for an unknown step or dtype; WF_SHAPE, WF_INVALID. */
WF_MUST_USE wf_status wf_steps_plan(const wf_field_spec *field, wf_dtype dtype, uint32_t rank,
                                    const int64_t dims[], wf_steps *out, wf_err *err);
/* Whether a field's records are places of words, as its first step has them: vocabulary, or
 * text_vectorization. */
bool wf_steps_read_words(const wf_field_spec *field);
/* One record through the stages: in [elems] to out. */
void wf_steps_run(const wf_steps *s, const void *in, void *out);
/* Bytes that wf_steps_view wants; 0 without views. */
size_t wf_steps_scratch(const wf_steps *s);
/* One record through the views: it is in the scratch memory until the next. */
const void *wf_steps_view(const wf_steps *s, const wf_view_draw *draw, const void *in,
                          void *scratch);
/* The same plan up to a stage of it. */
wf_steps wf_steps_before(const wf_steps *s, const wf_stage *stage);
/* The classes of one_hot; 0 if there is none. */
int64_t wf_steps_classes(const wf_steps *s);
/* What integers that a step makes are below, whatever the data hold; 0: no step makes them. */
int64_t wf_steps_made(const wf_steps *s);

#endif
