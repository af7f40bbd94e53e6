/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/failpoint.h - named places where a test makes a program die, stop, wait or fail.
 *
 *   WEFT_FAILPOINTS="ckpt.manifest.before=kill@3,ckpt.latest.after=error:ENOSPC"
 *
 * Actions: kill (SIGKILL to itself), stop (SIGSTOP to itself), sleep:MS, error:ERRNO (EIO, ENOSPC
 * or a number). `@N`: at the N-th visit only; without it at every one. Compiled in by the meson
 * option `failpoints`; without it a failpoint costs nothing and the variable is ignored.
 */
#ifndef WF_BASE_FAILPOINT_H
#define WF_BASE_FAILPOINT_H

#include "common/base/status.h"

#ifdef WEFT_WITH_FAILPOINTS
/* WF_OK, or WF_IO where the environment asks for an error here. */
WF_MUST_USE wf_status wf_failpoint(const char *name, wf_err *err);
#else
WF_MUST_USE static inline wf_status wf_failpoint(const char *name, wf_err *err)
{
    (void)name, (void)err;
    return WF_OK;
}
#endif

#endif
