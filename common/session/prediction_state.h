/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/prediction_state.h - what the files of a prediction share; nobody else includes
 * it.
 *
 *   prediction.c          opened; splits computed
 *   prediction_divided.c  of a model that workers compute, stage by stage
 *   prediction_request.c  the request as text
 *   prediction_out.c      where it goes
 *   prediction_parts.c    the folder of parts: begun, written, joined
 */
#ifndef WF_SESSION_PREDICTION_STATE_H
#define WF_SESSION_PREDICTION_STATE_H

#include "common/conf/conf.h"
#include "common/data/sequence.h"
#include "common/session/input_files.h"
#include "common/session/predict.h"
#include "common/session/prediction.h"
#include "common/session/weights.h"

/* One input of the model, and what it is fed. */
typedef struct wf_prediction_feed {
    const wf_value *value;
    bool batched;          /* it takes some records at a time, and else all of its file */
    wf_input_files files;  /* unless it was read whole */
    wf_sequence *sequence; /* NULL: it was */
    wf_tensor *tensor;     /* room for the records of a chunk, or all of them */
    wf_tensor now;         /* those that are fed, in that room */
} wf_prediction_feed;

/* One output: a record of it, or all of it where there is one run. */
typedef struct wf_prediction_output {
    const char *label;
    wf_dtype dtype;
    uint32_t rank; /* with the axis of records */
    int64_t dims[WF_MAX_RANK];
} wf_prediction_output;

typedef enum wf_prediction_form { WF_INTO_NPY, WF_INTO_FOLDER, WF_INTO_CSV } wf_prediction_form;

/* A split's parts, while they are written (prediction_parts.c). */
typedef struct wf_part_writer {
    wf_disk_file **files; /* [n] */
    size_t n;
    wf_bytes text; /* of a chunk, for csv */
} wf_part_writer;

struct wf_prediction {
    wf_arena *arena;
    wf_prediction_ask ask; /* with the step, the records and the split that were found */
    wf_prediction_how how;
    wf_job_conf *job;
    wf_weights weights;
    wf_graph *graph;
    wf_predictor *predictor;
    const char *name;                               /* for messages */
    wf_prediction_feed feeds[WF_PREDICTION_INPUTS]; /* [ask.n_inputs] */
    wf_prediction_output *outputs;                  /* [n_outputs] */
    size_t n_outputs;
    uint64_t records; /* 1 where no input has any: there is one run */
    uint64_t chunk;   /* records in memory */
    uint64_t n_splits;
    bool single; /* one run computes all: outputs need not be of records */
    wf_prediction_form form;
    const char *parts;     /* the folder */
    uint64_t id;           /* of this process's temporary files */
    wf_compiled *compiled; /* of a divided model that was compiled here */
    wf_prediction_model divided;
    wf_fed fed;            /* of the batch that was fed last */
    wf_part_writer writer; /* of the split that was begun, */
    uint64_t open;         /* 1 + its number; 0: none was */
};

/* prediction.c: what inputs are fed for records [first, first + n). */
WF_MUST_USE wf_status wf_prediction_fill(wf_prediction *p, uint64_t first, uint64_t n,
                                         wf_feed feeds[], wf_err *err);
/* prediction.c: an output as the first `n` records have it. Errors: WF_SHAPE. */
WF_MUST_USE wf_status wf_prediction_check_output(const wf_prediction *p,
                                                 const wf_prediction_output *o, uint64_t n,
                                                 wf_err *err);
/* prediction_out.c: the form and the folder of parts, by the name. Errors: WF_USAGE. */
WF_MUST_USE wf_status wf_prediction_choose_out(wf_prediction *p, wf_err *err);
/* That the file is no input; and that it can hold these outputs. Errors: WF_USAGE. */
WF_MUST_USE wf_status wf_prediction_check_inputs(const wf_prediction *p, wf_err *err);
WF_MUST_USE wf_status wf_prediction_check_outputs(const wf_prediction *p, wf_err *err);
/* prediction_divided.c: the model without weights; what its outputs are; and its end. */
WF_MUST_USE wf_status wf_divided_read(wf_prediction *p, wf_err *err);
WF_MUST_USE wf_status wf_divided_look(wf_prediction *p, wf_err *err);
void wf_divided_close(wf_prediction *p);

/* prediction_request.c: the request with the files that were found, to be compared with another;
 * and ask.tag, where it has none. */
WF_MUST_USE wf_status wf_prediction_describe(const wf_prediction *p, wf_bytes *out, wf_err *err);
WF_MUST_USE wf_status wf_prediction_make_tag(wf_prediction *p, wf_err *err);

/* prediction_parts.c */
WF_MUST_USE wf_status wf_part_open(wf_prediction *p, uint64_t split, wf_part_writer *w,
                                   wf_err *err);
/* Appends the outputs of some records. */
WF_MUST_USE wf_status wf_part_add(wf_prediction *p, wf_part_writer *w, const wf_named_list *outputs,
                                  wf_err *err);
/* Syncs and renames them. */
WF_MUST_USE wf_status wf_part_finish(wf_prediction *p, uint64_t split, wf_part_writer *w,
                                     wf_err *err);
/* Closes what is open, and removes what has not become a part. */
void wf_part_close(wf_prediction *p, uint64_t split, wf_part_writer *w);
/* The files that a split has. */
size_t wf_part_files(const wf_prediction *p);

#endif
