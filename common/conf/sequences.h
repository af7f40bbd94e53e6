/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/sequences.h - what must hold of data in plain text, lines or windows. For this room
 * only. */
#ifndef WF_CONF_SEQUENCES_H
#define WF_CONF_SEQUENCES_H

#include "common/conf/conf.h"
#include "common/conf/read.h"

/* Fills in what is not said, and that columns and keys go together. Errors: WF_USAGE with the line.
 */
WF_MUST_USE wf_status wf_check_sequences(wf_conf_reader *r, const wf_tree *node, wf_job_conf *j,
                                         wf_err *err);

#endif
