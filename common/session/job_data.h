/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/job_data.h - the data of a job for one of its graphs: what is read for each input,
 * how it becomes the input's dtype, and in which batches.
 *
 * It is made from the job file and the compiled graph (job_data_conf.h), and travels in Start
 * (job_data_message.h).
 */
#ifndef WF_SESSION_JOB_DATA_H
#define WF_SESSION_JOB_DATA_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include "common/data/learnt.h"
#include "common/graph/graph.h"

/* Points into itself and into what it was made from: it must not move, and lives no longer. */
typedef struct wf_job_data {
    wf_dataset_spec spec; /* of the inputs that have data; no field: no data */
    wf_field_spec fields[WF_DATA_MAX_FIELDS];
    wf_map_step steps[WF_DATA_MAX_FIELDS][WF_DATA_MAX_STEPS + 1]; /* one too many, to be refused */
    /* The training data, when it is another data set: whose mean and deviation count. */
    wf_dataset_spec trained;
    wf_field_spec trained_fields[WF_DATA_MAX_FIELDS];
    uint64_t batch; /* records */
    bool shuffle;
    bool grows;       /* its files are patterns: wf_job_data_take_files says which are read */
    const char *path; /* of the job file, and the line of its data: for messages */
    int line;
} wf_job_data;

/* Gives the steps what was learnt for them in training, which they borrow: the training data need
 * not be read. Errors: WF_MISMATCH, of wf_learnt_give. */
WF_MUST_USE wf_status wf_job_data_give(wf_job_data *d, const wf_learnt_list *learnt, wf_err *err);

/* Of data that grows: the patterns of its files; and has it read these files, whose paths are
 * borrowed, in place of them. What either makes is in the arena. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_job_data_patterns(const wf_job_data *d, wf_arena *a,
                                           const char *const **out, size_t *n, wf_err *err);
WF_MUST_USE wf_status wf_job_data_take_files(wf_job_data *d, const char *const paths[], size_t n,
                                             wf_arena *a, wf_err *err);

/* Opens the data and checks that its records fit the inputs of the graph that they feed, and that
 * class labels are in range. The caller owns *out. Errors: those of wf_dataset_open; WF_SHAPE
 * naming field, file and input; WF_INVALID for a label out of range. */
WF_MUST_USE wf_status wf_job_data_open(const wf_job_data *d, const wf_graph *graph,
                                       wf_dataset **out, wf_err *err);
/* The same checks against another graph that this data feeds: that of the ids of tables. */
WF_MUST_USE wf_status wf_job_data_check(const wf_job_data *d, const wf_graph *graph,
                                        wf_dataset *data, wf_err *err);

/* The shape of so many records of a field as the input takes them: dims has room for WF_MAX_RANK.
 * One number a record may be [] in the file and [1] in the graph: axes of extent 1 are ignored when
 * the two are compared, and are laid out as the graph has them. */
void wf_job_data_dims(const wf_value *input, const wf_field_info *f, uint64_t records,
                      uint32_t *rank, int64_t dims[]);

#endif
