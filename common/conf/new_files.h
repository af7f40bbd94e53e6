/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/new_files.h - the key `new_files` of a job's data, which then grows. For this room
 * only; `into` is a wf_job_conf. */
#ifndef WF_CONF_NEW_FILES_H
#define WF_CONF_NEW_FILES_H

#include "common/conf/conf.h"
#include "common/conf/read.h"

WF_MUST_USE wf_status wf_read_new_files(wf_conf_reader *r, const wf_tree *node, void *into,
                                        wf_err *err);
/* That the rest of the data fits it; `node` is the data. */
WF_MUST_USE wf_status wf_check_new_files(wf_conf_reader *r, const wf_tree *node,
                                         const wf_job_conf *j, wf_err *err);

#endif
