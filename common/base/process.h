/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/process.h - settings of the whole process. Only programs make them, at their start: a
 * library changes nothing of its host. */
#ifndef WF_BASE_PROCESS_H
#define WF_BASE_PROCESS_H

#include "common/base/status.h"

/* Raises the limit on open files as far as it may be raised. Errors: WF_IO. */
WF_MUST_USE wf_status wf_process_raise_files(wf_err *err);
/* malloc keeps large blocks that are given back: fresh pages cost four times the copy that fills
 * them. */
void wf_process_keep_blocks(void);

#endif
