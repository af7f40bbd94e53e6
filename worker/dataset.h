/* SPDX-License-Identifier: Apache-2.0 */
/* worker/dataset.h - the data that a job file names, opened for the inputs of a graph. */
#ifndef WF_WORKER_DATASET_H
#define WF_WORKER_DATASET_H

#include "common/base/status.h"
#include "common/conf/conf.h"
#include "common/data/data.h"
#include "common/graph/graph.h"

/* Opens the fields [n] of a job (its train or eval part) that are inputs of the graph, each cast to
 * the input's dtype, and checks that their records fit and that class labels are in range. The
 * caller owns *out. Errors: those of wf_dataset_open; WF_SHAPE naming field, file and input;
 * WF_INVALID for an input that no field feeds, or a label out of range. */
WF_MUST_USE wf_status wf_worker_open_data(const wf_job_conf *job, const wf_conf_field fields[],
                                          size_t n, const wf_graph *graph, wf_dataset **out,
                                          wf_err *err);

/* The shape of so many records of a field as the input takes them: dims has room for WF_MAX_RANK.
 * One number a record may be [] in the file and [1] in the graph: axes of extent 1 are ignored when
 * the two are compared, and are laid out as the graph has them. */
void wf_worker_input_dims(const wf_value *input, const wf_field_info *f, uint64_t records,
                          uint32_t *rank, int64_t dims[]);

#endif
