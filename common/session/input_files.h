/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/input_files.h - files that no job file names, as the data of one input: which
 * format they are of, and what happens to their records. */
#ifndef WF_SESSION_INPUT_FILES_H
#define WF_SESSION_INPUT_FILES_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include "common/conf/conf.h"
#include "common/data/learnt.h"

/* A data set of one field. Points into itself and into what it was made from: it must not move. */
typedef struct wf_input_files {
    wf_dataset_spec set;
    wf_field_spec field;
    wf_map_step steps[WF_DATA_MAX_STEPS + 1];
    wf_dataset_spec trained; /* the reference of `set`, where it has one */
    wf_field_spec trained_field;
} wf_input_files;

/* Files [n] for the field of that name of a job: npy files, or files of the job's format, or of the
 * format that their name says where the job's has no files; they go through the job's data.map with
 * what it has learnt (NULL: nothing is known of that). `want`: the dtype at the end. What it makes
 * is in the arena, which outlives it. Errors: WF_MISMATCH, WF_NOMEM; those of wf_input_of_model. */
WF_MUST_USE wf_status wf_input_of_job(const wf_job_conf *job, const wf_learnt_list *learnt,
                                      const char *field, const char *const paths[], size_t n,
                                      wf_dtype want, wf_arena *a, wf_input_files *out, wf_err *err);

/* Files [n] for an input of a model of which nothing else is known: of the format that their name
 * says, as they are; numbers in text become `want`. A csv file gives all its columns, or those that
 * its path names, "rows.csv#age,income". `width`: the numbers of a record of the input; 0: not
 * known. Errors: WF_USAGE for columns that are not there or too many; those of reading a header;
 * WF_UNSUPPORTED for text, which needs a vocabulary; WF_NOMEM. */
WF_MUST_USE wf_status wf_input_of_model(const char *input, const char *const paths[], size_t n,
                                        wf_dtype want, uint64_t width, wf_arena *a,
                                        wf_input_files *out, wf_err *err);

#endif
