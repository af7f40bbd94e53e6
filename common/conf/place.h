/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/place.h - the keys `place` and `micro_batches`. For this room only. */
#ifndef WF_CONF_PLACE_H
#define WF_CONF_PLACE_H

#include "common/conf/conf.h"
#include "common/conf/read.h"

/* Into a wf_job_conf. */
wf_status wf_read_place(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err);
wf_status wf_read_micro_batches(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err);
/* What must hold between these keys and others of the job. Errors: WF_USAGE. */
WF_MUST_USE wf_status wf_check_place(const wf_conf_reader *r, const wf_job_conf *j, wf_err *err);

#endif
