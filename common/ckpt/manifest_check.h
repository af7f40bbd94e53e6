/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/manifest_check.h - for this room only. */
#ifndef WF_CKPT_MANIFEST_CHECK_H
#define WF_CKPT_MANIFEST_CHECK_H

#include "common/ckpt/manifest.h"

/* `bad` is the status of a broken rule: WF_INVALID when writing, WF_CORRUPT when reading. */
WF_MUST_USE wf_status wf_manifest_check(const wf_manifest *m, const char *path, wf_status bad,
                                        wf_err *err);

#endif
