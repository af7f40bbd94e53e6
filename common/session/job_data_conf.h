/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/job_data_conf.h - a job's data, from its file and the compiled graph. */
#ifndef WF_SESSION_JOB_DATA_CONF_H
#define WF_SESSION_JOB_DATA_CONF_H

#include "common/compile/compile.h"
#include "common/conf/conf.h"
#include "common/session/job_data.h"

/* Fills *out with the fields of job->train or job->eval that feed the graph (with tables, or their
 * ids graph), or with what synthetic data for it is; borrows from job and c. Errors: WF_USAGE for
 * too many fields; WF_INVALID for an input without data; WF_UNSUPPORTED for synthetic data of an
 * input without a batch axis. */
WF_MUST_USE wf_status wf_job_data_of(const wf_job_conf *job, const wf_conf_records *from,
                                     const wf_compiled *c, wf_job_data *out, wf_err *err);

/* The steps of a field of the job's data.map, at most one more than there may be. Gives how many;
 * they point into the job. */
size_t wf_job_data_steps(const wf_job_conf *job, const char *field,
                         wf_map_step steps[static WF_DATA_MAX_STEPS + 1]);

/* Whether a step of a field goes by what the training data hold. */
bool wf_job_data_learns(const wf_field_spec *f);

/* Says of a field whether its records are bags, by the job or by the column of libsvm that it has.
 * width: the most values of one; 0: as many as the job's input of that name has. */
void wf_job_data_mark_bag(const wf_job_conf *job, uint64_t width, wf_field_spec *f);

/* Where a field of records beside the job's takes from what its steps learn (standardise,
 * words): the training records of that field, as a data set of it alone. `like` is the field
 * as it is read; *field is filled for *out, which points to it. False when none of its steps wants
 * that. */
bool wf_job_data_reference(const wf_job_conf *job, const wf_field_spec *like, wf_field_spec *field,
                           wf_dataset_spec *out);

#endif
