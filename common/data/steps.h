/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/steps.h - the `map` steps of a field, planned once and run record by record. For this
 * room only.
 *
 * A plan is a short list of stages that change elements; reshape changes the shape of the plan
 * only. What can fail fails while planning.
 */
#ifndef WF_DATA_STEPS_H
#define WF_DATA_STEPS_H

#include "common/base/status.h"
#include "common/data/data.h"
#include <stdint.h>

typedef enum wf_stage_kind { WF_STAGE_CAST, WF_STAGE_SCALE, WF_STAGE_ONE_HOT } wf_stage_kind;

typedef struct wf_stage {
    wf_stage_kind kind;
    wf_dtype from, to;
    double factor;   /* of scale */
    int64_t classes; /* of one_hot: one element becomes so many */
} wf_stage;

typedef struct wf_steps {
    wf_stage stages[WF_DATA_MAX_STEPS + 1]; /* one_hot last, if it is there */
    uint32_t n;
    int64_t elems; /* of a record that goes in */
    wf_dtype in;
    wf_dtype dtype; /* of what comes out, with its shape */
    uint32_t rank;
    int64_t dims[WF_MAX_RANK];
} wf_steps;

/* Plans a field's steps over records of dims[rank]; the batch axis must fit beside them, so rank is
 * below WF_MAX_RANK. Errors: WF_USAGE for an unknown step or dtype; WF_SHAPE, WF_INVALID. */
WF_MUST_USE wf_status wf_steps_plan(const wf_field_spec *field, wf_dtype dtype, uint32_t rank,
                                    const int64_t dims[], wf_steps *out, wf_err *err);
/* One record: in [elems] to out. */
void wf_steps_run(const wf_steps *s, const void *in, void *out);
/* The classes of one_hot; 0 if there is none. */
int64_t wf_steps_classes(const wf_steps *s);

#endif
