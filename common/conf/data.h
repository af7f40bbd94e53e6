/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/data.h - the key `data` of a job file. For this room only: its rows, and a function
 * for those of job.c; `into` is a wf_job_conf. */
#ifndef WF_CONF_DATA_H
#define WF_CONF_DATA_H

#include "common/conf/conf.h"
#include "common/conf/read.h"

extern const wf_key wf_data_keys[];
WF_MUST_USE wf_status wf_read_data(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err);

#endif
